"""Generated code can refer to every public function: its name evaluates to it, also where `torch` is imported as teletensor."""

from __future__ import annotations

import subprocess
import sys

import pytest

import teletensor as torch
from teletensor import fx
from teletensor._toplevel import NAMES
from teletensor.fx._names import public_path
from teletensor.fx.node import _get_qualified_name
from tests.conftest import IN_PROCESS, client_environment

NAMESPACES = ["", "nn.functional", "linalg", "fft", "special", "functional", "nn.init", "signal.windows"]


def functions(namespace):
    module = torch
    for part in filter(None, namespace.split(".")):
        module = getattr(module, part)
    names = [name for name in dir(module) if not name.startswith("_")]
    if not namespace:
        names = [name for name in names if name in vars(torch) or name in " ".join(NAMES.values()).split()]
    found = {name: getattr(module, name) for name in names}
    return {name: f for name, f in found.items() if callable(f) and not isinstance(f, type) and hasattr(f, "__name__")}


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_names_evaluate_to_the_functions(namespace):
    found = functions(namespace)
    assert len(found) > 5
    for name, function in found.items():
        path = public_path(function)
        if path is None:  # a function of another package, or an old name of a function
            assert not (function.__module__ or "").startswith("teletensor") or f"{name}_" == function.__name__, name
        else:
            assert eval(path, {"torch": torch}) is function, path


def test_methods_and_types():
    assert _get_qualified_name(torch.Tensor.relu) == "torch.Tensor.relu"
    assert fx.node._type_repr(torch.Tensor) == "torch.Tensor"
    assert fx.node._type_repr(torch.nn.Linear) == "torch.nn.modules.linear.Linear"
    assert fx.node._type_repr(list[int]) == "list[int]"


SCRIPT = """
import teletensor.as_torch
import torch, torch.fx
import torch.nn.functional as F
from torch.fx.experimental.optimization import fuse

def f(x: torch.Tensor) -> torch.Tensor:
    return F.relu(torch.add(x, 1)) + torch.nn.Linear(2, 2).weight.detach()

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval()
x = torch.ones(3, 2)
assert len(list(fuse(model).children())) == 1
assert torch.equal(torch.fx.symbolic_trace(model)(x), model(x))
print(torch.fx.symbolic_trace(f).code)
"""


@pytest.mark.skipif(IN_PROCESS, reason="starts a process that connects to a daemon")
def test_tracing_as_torch():
    environment = client_environment()
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "def forward(self, x : torch.Tensor) -> torch.Tensor:" in result.stdout
    assert "relu = torch.nn.functional.relu(add, inplace = False)" in result.stdout
