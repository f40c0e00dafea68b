"""Names that are imported at their first use: how they look before it, and what they are if a program replaced something."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from .record_star_imports import FURTHER, names_of, own_names_of

_RECORDED = json.loads(Path(__file__).with_name("star_imports.json").read_text())
PYTORCHS = {module: names for module, names in _RECORDED.items() if not module.startswith("further ")}
FURTHERS = {module: set(_RECORDED[f"further {module}"]) for module in FURTHER.split()}
OWN = {  # names that PyTorch does not have
    "utils.data": {"PinnedDataset", "prefetch", "progress"},
    "__init__": {"connect", "connect_all", "connection", "disconnect", "immediate_errors", "no_sync", "sync_report", "synchronize"},
    "cuda": {"replay_stats"},
}


def run(program: str) -> None:
    """Runs a program in an interpreter that has imported nothing."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", PYTORCHS)
def test_star_imports_give_pytorchs_names(module):
    assert set(names_of("teletensor", module)) - OWN.get(module, set()) == set(PYTORCHS[module])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", FURTHERS)
def test_star_imports_give_those_of_pytorchs_names_that_exist(module):
    given = set(own_names_of("teletensor", module)) - OWN.get(module, set())
    found = importlib.import_module("teletensor" if module == "__init__" else f"teletensor.{module}")
    assert given <= FURTHERS[module]
    assert not {name for name in FURTHERS[module] - given if hasattr(found, name)}
    assert len(given) > 800 or module != "__init__"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("nn", "Linear"), ("nn", "Parameter"), ("nn.modules", "Conv2d"), ("nn.modules.conv", "LazyConv2d"),
        ("nn.modules.activation", "MultiheadAttention"), ("nn.modules.linear", "LazyLinear"),
        ("nn.modules.batchnorm", "LazyBatchNorm1d"), ("nn.modules.instancenorm", "LazyInstanceNorm3d"),
        ("distributions", "Normal"), ("optim", "Adam"), ("nn.utils", "skip_init"), ("utils.data", "DataLoader"),
    ],
)  # fmt: skip
def test_namespaces_have_the_names_before_their_first_use(module, name):
    lookup = f"import importlib; m = importlib.import_module('teletensor.{module}')\n"
    run(lookup + f"assert {name!r} in dir(m)")
    run(lookup + f"assert m.__dict__[{name!r}] is m.{name} and isinstance(m.__dict__, dict)")
    run(lookup + f"value = vars(m)[{name!r}]; assert callable(value) and value.__name__ == {name!r}")


@pytest.mark.parametrize(
    ("module", "package", "name"),
    [
        ("distributions.normal", "distributions", "Normal"), ("nn.modules.linear", "nn", "Linear"),
        ("nn.modules.linear", "nn.modules", "Linear"), ("nn.modules.lazy", "nn.modules.conv", "LazyConv1d"),
        ("nn.utils.weight_norm", "nn.utils", "weight_norm"), ("optim.adam", "optim", "Adam"),
        ("torchao.quantization.quantize_.workflows.int8.int8_tensor", "torchao.quantization", "Int8Tensor"),
    ],
)  # fmt: skip
def test_replaced_attributes_are_not_exported(module, package, name):
    """As if the package had imported the names itself."""
    run(f"""
import importlib
from unittest import mock
import teletensor.{package}
with mock.patch("teletensor.{module}.{name}") as replaced:
    exported = importlib.import_module("teletensor.{package}").{name}
    assert exported is not replaced
module = importlib.import_module("teletensor.{module}")
assert module.{name} is exported is importlib.import_module("teletensor.{package}").{name}
with mock.patch("teletensor.{package}.{name}") as replaced:
    assert importlib.import_module("teletensor.{package}").{name} is replaced and module.{name} is exported
assert importlib.import_module("teletensor.{package}").{name} is exported
""")


def test_replaced_classes_of_nn():
    run("""
import teletensor as t
t.nn.modules.linear.Linear = 5
assert t.nn.Linear(2, 3).out_features == 3 and t.nn.modules.Linear is t.nn.Linear
t.nn.modules.Conv1d = 6
assert t.nn.Conv1d(2, 3, 1).out_channels == 3 and t.nn.modules.conv.Conv1d is t.nn.Conv1d
""")


def test_the_table_of_nn_has_the_classes_of_its_modules():
    import teletensor as t
    from teletensor.nn._names import CLASSES

    for module, names in CLASSES.items():
        for name in names.split():
            assert vars(getattr(t.nn.modules, module))[name] is getattr(t.nn, name) is getattr(t.nn.modules, name)
    assert "Linear" in t.nn.__all__ and set(t.nn.modules.__all__) < set(t.nn.__all__)


def test_names_are_missing_as_before():
    import teletensor as t

    for module in (t.nn, t.nn.modules, t.nn.modules.conv, t.distributions):
        with pytest.raises(AttributeError, match="has no attribute 'absent'"):
            _ = module.absent
        assert "absent" not in vars(module)


def test_pipes_have_the_methods_of_pipes_that_were_not_imported():
    run("""
from teletensor.utils.data import IterDataPipe
class Numbers(IterDataPipe):
    def __iter__(self): yield from range(4)
assert list(Numbers().map(lambda x: x * 2).batch(2)) == [[0, 2], [4, 6]]
""")
    run("""
from teletensor.utils.data import IterDataPipe
class Other(IterDataPipe): pass
try:
    IterDataPipe.register_datapipe_as_function("map", Other)
except Exception as e:
    assert "already taken" in str(e)
else:
    raise AssertionError("expected an error")
""")


def test_classes_of_private_modules_name_pytorchs_modules():
    run("""
from teletensor import cuda, sparse
from teletensor.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
from teletensor.distributed.elastic.multiprocessing import errors
from teletensor.distributed.elastic.rendezvous import RendezvousInfo
assert {errors.ChildFailedError.__module__, errors.record.__module__} == {errors.__name__}
assert DDPCommHookType.__module__ == "teletensor.distributed.algorithms.ddp_comm_hooks"
assert RendezvousInfo.__module__ == "teletensor.distributed.elastic.rendezvous.api"
assert cuda._devices and cuda.device_index and sparse.semi_structured
""")
