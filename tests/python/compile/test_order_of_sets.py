"""Functions that iterate over sets compute what they compute without compilation, whatever the order of the elements."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Functions of tensors, which give another result for another order. Each element of a set is applied to the value so far.
PROGRAM = """
import teletensor as torch
def literal(x):
    for name in {"sin", "cos", "exp", "tanh", "sqrt", "abs"}: x = getattr(torch, name)(x)
    return x
def union(x):
    for name in {"sin", "cos", "exp"} | {"tanh", "sqrt", "abs"}: x = getattr(torch, name)(x)
    return x
def added(x):
    names = set()
    for name in ("sin", "cos", "exp", "tanh"): names.add(name)
    names.discard("cos")
    names.add("abs")
    for name in list(names): x = getattr(torch, name)(x)
    return x
def popped(x):
    numbers = {1024, 3, 17, -5, 8}
    while numbers: x = x * 2 + numbers.pop()
    return x
SET = {"sin", "cos", "exp", "tanh"}
def of_module(x):
    SET.add("abs")
    for name in SET: x = getattr(torch, name)(x)
    return x
x = torch.full((2,), 0.7)
for function in (literal, union, added, popped, of_module):
    torch.testing.assert_close(torch.compile(function)(x), function(x), equal_nan=True, msg=function.__name__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_results_do_not_depend_on_compilation(seed):
    from tests.conftest import client_environment

    environment = {**client_environment(), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
