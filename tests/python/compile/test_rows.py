"""Graphs and graph breaks of the functions in rows.py and kind_rows.py, and their results beside those of plain Python."""

from __future__ import annotations

import json
import pathlib

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters
from teletensor.utils import _pytree as pytree

from . import kind_rows, rows  # noqa: F401 - adds its rows

# By name of a row of kind_rows.py: what PyTorch 2.15 made of it, and what is made of it here.
RECORDED = json.loads((pathlib.Path(__file__).parent / "kind_rows.json").read_text())


def cases():
    """The rows with the numbers of graphs and breaks."""
    for function, graphs, breaks in rows.ROWS:
        recorded = RECORDED.get(function.__qualname__)
        if recorded is None:
            yield function, graphs, breaks
        else:
            yield function, *recorded["here"]


CASES = list(cases())


def compare(got, want):
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and a.requires_grad == b.requires_grad
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        elif not callable(b):
            assert type(a) is type(b) and (a == b or a is b)


def outcome(function, *args):
    result = function(*args)
    return result(args[1]) if callable(result) and not isinstance(result, torch.Tensor) else result


@pytest.mark.parametrize(("function", "graphs", "breaks"), CASES, ids=lambda v: getattr(v, "__qualname__", ""))
def test_first_and_second_call(function, graphs, breaks):
    torch._dynamo.reset()
    torch.manual_seed(0)
    args = torch.randn(3, 4), torch.randn(3, 4)
    made = []

    def backend(module, inputs):
        made.append(module)
        return module.forward

    want = outcome(function, *args)
    compiled = torch.compile(function, backend=backend)
    compare(outcome(compiled, *args), want)
    assert (len(made), sum(counters["graph_break"].values())) == (graphs, breaks), dict(counters["graph_break"])
    compare(outcome(compiled, *args), outcome(function, *args))
    assert not counters["internal"]
    if not counters["recompiles"]:
        assert len(made) == graphs


@pytest.mark.parametrize("function", [r[0] for r in CASES[:309:3]], ids=lambda v: v.__qualname__)
def test_the_engine_and_gradients(function):
    torch.manual_seed(0)
    args = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    results = []
    for f in (function, torch.compile(function)):
        try:
            result = outcome(f, *args)
        except Exception as e:  # noqa: BLE001 - both must raise the same
            results.append((type(e), str(e)))
            continue
        leaves = [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point()]
        total = sum(t.double().sum() for t in leaves)
        grad = torch.autograd.grad(total, args[0], allow_unused=True)[0] if leaves else None
        results.append((result, grad))
    (got, got_grad), (want, want_grad) = results[1], results[0]
    if isinstance(want, type):
        assert (got, got_grad) == (want, want_grad)
        return
    pairs = zip(pytree.tree_leaves(got), pytree.tree_leaves(want))
    for a, b in pairs:
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b)
    assert (got_grad is None) == (want_grad is None)
    if want_grad is not None:
        torch.testing.assert_close(got_grad, want_grad)
