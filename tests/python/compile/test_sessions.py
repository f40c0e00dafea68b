"""Compiled functions whose process connects to another engine."""

from __future__ import annotations

import subprocess
import sys

import pytest

import teletensor as torch
from tests.conftest import IN_PROCESS, client_environment

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="connects again")

_MAIN = """
import os, warnings
import teletensor as torch
from teletensor import nn

address = os.environ["TELETENSOR_ADDRESS"]

@torch.compile(fullgraph=True)
def scaled(x, n):
    return (x * 2 + torch.ones(3)).relu() * n

@torch.compile
def made():
    return torch.arange(4.0) * 2

@torch.compile
def step(model, x):
    loss = model(x).square().mean()
    loss.backward()
    return loss

warnings.simplefilter("error")
compiled = None
for i in range(12):  # more often than recompile_limit
    if i:
        torch.connect(address)
    model = torch.compile(nn.Linear(3, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(i)
    for _ in range(2):
        assert scaled(torch.full((3,), float(i)), 2).tolist() == [2.0 * (2 * i + 1)] * 3
        assert made().tolist() == [0, 2, 4, 6]
        assert model(torch.ones(3)).tolist() == [4.0 * i] * 3
        assert step(model, torch.ones(3)).item() == 16.0 * i * i
    if i > 0:
        try:
            scaled(old, 2).sum().item()
        except (ConnectionError, RuntimeError, ValueError):
            pass
        else:
            raise AssertionError("a tensor of a closed session")
    old = torch.ones(3)
    torch._dynamo.reset() if i == 5 else None

engines = torch.connect_all([address])
assert scaled(torch.ones(3), 2).tolist() == [6.0] * 3
"""

_TWO_SESSIONS = """
import teletensor as torch

engines = torch.connect_all(2)
f = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
for _ in range(3):
    for i in range(2):
        with engines.use(i):
            x = torch.full((3,), float(i))
            assert f(x).tolist() == [2.0 * i + 1] * 3
assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2
"""


@pytest.mark.parametrize("captures", ["0", "1"])
def test_new_session_compiles_again(captures, tmp_path):
    environment = client_environment(
        TELETENSOR_ADDRESS=torch.connection().address, TELETENSOR_STORED_CAPTURES=captures, XDG_CACHE_HOME=str(tmp_path)
    )
    found = subprocess.run([sys.executable, "-c", _MAIN], env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]


def test_sessions_of_several_engines_have_code_each():
    environment = client_environment()
    found = subprocess.run([sys.executable, "-c", _TWO_SESSIONS], env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
