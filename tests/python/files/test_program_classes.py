"""save and load of modules and of the program's own objects."""

import datetime
import io
import os
import pickle
import subprocess
import types
from collections import OrderedDict, deque

import numpy as np
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
    [types.SimpleNamespace(a=1), datetime.datetime(2020, 1, 2), datetime.timedelta(3), datetime.date(2020, 1, 1), range(3),
     deque([1, 2], maxlen=3)],
    ids=lambda v: type(v).__name__,
)
def test_values_of_the_standard_library(value):
    assert tt.load(_saved({"value": value}), weights_only=False) == {"value": value}


class Options(dict):
    """Its items are also attributes; a key is stored in lower case."""

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)
        self.__dict__[key] = value


class Ordered(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


class Names(list):
    def append(self, name):
        super().append(name + "!")


def test_subclasses_of_dict_and_list():
    """Their elements are stored and read as they are, without the methods of the class."""
    options, names, ordered = Options(), Names(["a"]), Ordered()
    options["Rate"], ordered["z"], ordered["a"] = [tt.ones(2)], 1, 2
    names.append("b")
    file = _saved([options, names, ordered])
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        tt.load(file)
    file.seek(0)
    found, read, again = tt.load(file, weights_only=False)
    assert type(found) is Options and list(found) == ["rate"] and found.Rate is found["rate"] and found.Rate[0].tolist() == [1, 1]
    assert type(read) is Names and read == ["a", "b!"]
    assert type(again) is Ordered and list(again.items()) == [("z", 2), ("a", 4)]


@pytest.mark.parametrize("function", ["relu", "gelu", "tanh", "cross_entropy", "softmax"])
def test_functions_of_modules(function):
    function = getattr(tt.nn.functional, function)
    layer = tt.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, activation=function)
    loaded = tt.load(_saved(layer), weights_only=False)
    assert loaded.activation is function
    assert tt.load(_saved({"f": tt.relu, "g": tt.einsum}), weights_only=False) == {"f": tt.relu, "g": tt.einsum}


NUMPY = [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(3, np.uint16), np.zeros((0, 3), np.float16),
    np.array(["ab", "c"]), np.array([b"ab"]), np.array([1 + 2j]), np.array([True, False]), np.float64(0.1), np.int8(-3), np.bool_(True),
    np.complex64(1j), np.dtype("float32"), np.random.RandomState(0).get_state()[1],
]  # fmt: skip


@pytest.mark.parametrize("value", NUMPY, ids=lambda v: f"{type(v).__name__} {getattr(v, 'dtype', v)}")
@pytest.mark.parametrize("protocol", [2, 4])
def test_values_of_numpy(value, protocol):
    file = io.BytesIO()
    tt.save({"a": value, "b": [value]}, file, pickle_protocol=protocol)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        tt.load(io.BytesIO(file.getvalue()))
    loaded = tt.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert type(loaded["a"]) is type(value)
    assert np.array_equal(loaded["a"], value)
    if isinstance(value, np.ndarray):
        assert loaded["b"][0] is loaded["a"] and (loaded["a"].dtype, loaded["a"].flags.fnc) == (value.dtype, value.flags.fnc)


DTYPE = (np.dtype, ("f4", False, True), (3, "<", None, None, None, -1, -1, 0))
DAMAGED_NUMPY = [
    (DTYPE, (1, (2,), np.dtype("f4"), False, b"1234")),  # 4 bytes of 8
    (DTYPE, (1, (-1,), np.dtype("f4"), False, b"")),
    (DTYPE, (1, (2**61, 2**61), np.dtype("f4"), False, b"")),
    (DTYPE, (1, (2**70,), np.dtype("f4"), False, b"")),
    (DTYPE, (1, (1,), np.dtype("f4"), False, [1.0])),
    (DTYPE, (1, (1,), "f4", False, b"1234")),
    (DTYPE, (1, [1], np.dtype("f4"), False, b"1234")),
    (DTYPE, ()),
    ((np.dtype, ("O8", False, True), None), None),
    ((np.dtype, ("M8[ns]", False, True), None), None),
    ((np.dtype, ([("a", "f4")],), None), None),
    ((np.dtype, ("f4,f4",), None), None),
    ((np.dtype, (3,), None), None),
    ((np.dtype, ("f4", False, True), (3, ">", None, None, None, -1, -1, 0)), None),
    ((np.dtype, ("f4", False, True), (3, "<", None, ("a",), {"a": (np.dtype("f4"), 0)}, 4, 4, 0)), None),
]


class Made:
    """Pickled as a call with a state; the state is given to the call's result."""

    def __init__(self, function, args, state):
        self.parts = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.parts


@pytest.mark.parametrize("dtype, state", DAMAGED_NUMPY)
def test_damaged_values_of_numpy(dtype, state):
    reconstruct = np.zeros(1).__reduce__()[0]
    value = [Made(*dtype), Made(reconstruct, (np.ndarray, (0,), b"b"), state if state != () else (1,))]
    with pytest.raises(tt.serialization.LoadError, match="the file is damaged"):
        tt.load(io.BytesIO(pickle_archive(value)), weights_only=False)


@pytest.mark.parametrize("args", [(np.dtype("f8"), b"1234"), (np.dtype("f8"),), ("f8", b"12345678"), (np.dtype("U"), b"")])
def test_damaged_numbers_of_numpy(args):
    with pytest.raises(tt.serialization.LoadError, match="the file is damaged"):
        tt.load(io.BytesIO(pickle_archive(Calls(np.float64(1).__reduce__()[0], *args))), weights_only=False)


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


class Marked(tt.Tensor):
    pass


@pytest.mark.parametrize("attributes", [{}, {"note": "text"}])
def test_parameter_of_a_class_of_the_program(attributes):
    parameter = tt.nn.Parameter(tt.ones(2).as_subclass(Marked), requires_grad=False)
    vars(parameter).update(attributes)
    file = io.BytesIO()
    tt.save({"w": parameter}, file)
    for options in ({"weights_only": False}, {}):
        file.seek(0)
        with tt.serialization.safe_globals([Marked]):
            found = tt.load(file, **options)["w"]
        assert type(found) is Marked and isinstance(found, tt.nn.Parameter) and not found.requires_grad
        assert vars(found).items() >= attributes.items() and found.tolist() == [1, 1]
