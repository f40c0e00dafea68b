"""Functions that iterate over sets, return them or keep them beyond a break compute what they compute without compilation."""

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

# Sets that live longer than the graph: whether the function is captured follows its name.
KEPT = """
import teletensor as torch
NAMES = ["sin", "cos", "exp", "tanh", "sqrt", "abs", "neg", "log1p", "sigmoid"]
def captured_built(x): return x + 1, set(NAMES), {*NAMES}, frozenset(NAMES)
def captured_added(x):
    names = {"a", "b"}
    names.update(NAMES)
    names.clear()
    for name in NAMES: names.add(name)
    x = x + 1
    torch._dynamo.graph_break()
    names.add("c")
    return x * 2, names
def plain_literal(x): return x + 1, {"sin", "cos", "exp", "tanh", "sqrt", "abs"}
def plain_union(x): return x + 1, {*NAMES[:5]} | {*NAMES[3:]}
def plain_update(x):
    names = {"a", "b"}
    names |= {"c", "dd", "e", "ff"}
    return x + 1, names
def plain_copy(x): return x + 1, set(frozenset(NAMES)), set(dict.fromkeys(NAMES))
def plain_removed(x):
    numbers = set(range(0, 1000, 7))
    for i in range(7, 1000, 7): numbers.discard(i)
    x = x + 1
    torch._dynamo.graph_break()
    for i in (1001, 33, 64): numbers.add(i)
    return x * 2, numbers
x = torch.full((2,), 0.7)
for function in [f for name, f in globals().copy().items() if name.startswith(("captured_", "plain_"))]:
    torch._dynamo.reset()
    expected = [list(v) for v in function(x)[1:]]
    for _ in range(2):
        assert [list(v) for v in torch.compile(function)(x)[1:]] == expected, function.__name__
    graphs = torch._dynamo.explain(function)(x).graph_count
    assert (graphs > 0) == function.__name__.startswith("captured_"), (function.__name__, graphs)
def large():
    numbers = set(range(0, 2000, 7))
    for i in range(21, 2000, 7): numbers.discard(i)
    return numbers
def add(x, number):
    existing.add(number)
    return x + 1
existing = large()
compiled = torch.compile(add, fullgraph=True)
for number in ("a", 64, 1001, 33, 64): compiled(x, number)
expected = large()
for number in ("a", 64, 1001, 33): expected.add(number)
assert list(existing) == list(expected)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("program", [PROGRAM, KEPT], ids=["iterated", "kept"])
def test_results_do_not_depend_on_compilation(seed, program):
    from tests.conftest import client_environment

    environment = {**client_environment(), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
