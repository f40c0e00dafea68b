"""save and load of modules and of the program's own objects."""

import datetime
import io
import os
import pickle
import subprocess
import types

import pytest

import teletensor as tt
from teletensor.serialization._save import LEGACY_MAGIC


class Net(tt.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = tt.nn.Sequential(tt.nn.Linear(3, 4), tt.nn.ReLU(), tt.nn.Linear(4, 2))
        self.options = {"name": "net"}

    def forward(self, x):
        return self.body(x)


def _saved(value):
    file = io.BytesIO()
    tt.save(value, file)
    file.seek(0)
    return file


def test_module():
    net = Net()
    file = _saved(net)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        tt.load(file)
    file.seek(0)
    loaded = tt.load(file, weights_only=False)
    x = tt.randn(2, 3)
    assert type(loaded) is Net and loaded.options == {"name": "net"} and tt.equal(loaded(x), net(x))


def test_optimizer_keeps_its_parameters():
    net = Net()
    optimizer = tt.optim.Adam(net.parameters())
    net(tt.ones(1, 3)).sum().backward()
    optimizer.step()
    loaded = tt.load(_saved({"net": net, "optimizer": optimizer}), weights_only=False)
    assert loaded["optimizer"].param_groups[0]["params"][0] is loaded["net"].body[0].weight


@pytest.mark.parametrize(
    "value",
    [types.SimpleNamespace(a=1), datetime.datetime(2020, 1, 2), datetime.timedelta(3), datetime.date(2020, 1, 1), range(3)],
    ids=lambda v: type(v).__name__,
)
def test_values_of_the_standard_library(value):
    assert tt.load(_saved({"value": value}), weights_only=False) == {"value": value}


class Calls:
    """Pickled as a call of a function with arguments."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def _ran(path):
    open(path, "w").close()


@pytest.mark.parametrize("function", [os.system, eval, subprocess.Popen, _ran, tt.load, getattr], ids=lambda f: f.__name__)
def test_a_file_calls_no_function(function, tmp_path):
    target = tmp_path / "ran"
    argument = {eval: f"open({str(target)!r}, 'w')", os.system: f"touch {target}"}.get(function, str(target))
    with pytest.raises(pickle.UnpicklingError):
        tt.load(io.BytesIO(pickle_archive(Calls(function, argument))), weights_only=False)
    assert not target.exists()


def pickle_archive(value):
    """The legacy format with the value's pickle in place of an object's."""
    system = {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}
    header = b"".join(pickle.dumps(part, 2) for part in (LEGACY_MAGIC, 1001, system))
    return header + pickle.dumps(value, 2) + pickle.dumps([], 2)
