"""Custom operators with a function for fake tensors: nodes of the graph, whose Python code runs in each call."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported
from teletensor._dynamo.utils import counters

CALLS: list[int] = []


@pytest.fixture
def shift():
    torch._dynamo.reset()
    CALLS.clear()

    @torch.library.custom_op("compiled_tests::shift", mutates_args=())
    def shift(x: torch.Tensor, k: int) -> torch.Tensor:
        CALLS.append(k)
        return x + x.flatten().tolist()[0] * 0 + k

    return shift


def complete(shift):
    shift.register_fake(lambda x, k: torch.empty_like(x))
    shift.register_autograd(lambda ctx, g: (g * 2, None), setup_context=lambda ctx, inputs, output: None)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_one_graph_with_gradients(shift, backend):
    complete(shift)

    def f(x):
        return torch.ops.compiled_tests.shift(x * 2, 3) * x, shift(x, 1)

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for needs_grad in (False, True, True):
        x, y = (torch.linspace(0, 1, 6).reshape(2, 3).requires_grad_(needs_grad) for _ in range(2))
        CALLS.clear()
        got = compiled(x)
        assert CALLS == [3, 1]
        for a, b in zip(got, f(y)):
            torch.testing.assert_close(a, b)
            assert a.requires_grad == b.requires_grad
        if needs_grad:
            sum(t.sum() for t in got).backward()
            sum(t.sum() for t in f(y)).backward()
            torch.testing.assert_close(x.grad, y.grad)
    assert not counters["graph_break"] and "programs" not in counters["engine"]


def test_results_of_complex_numbers_require_gradients():
    torch._dynamo.reset()

    @torch.library.custom_op("compiled_tests::turn", mutates_args=())
    def turn(x: torch.Tensor) -> torch.Tensor:
        return x * 1j

    turn.register_fake(lambda x: torch.empty_like(x, dtype=torch.complex64))
    turn.register_autograd(lambda ctx, g: (g * -1j).real)
    compiled = torch.compile(lambda x: turn(x).requires_grad, fullgraph=True)
    assert compiled(torch.ones(2, requires_grad=True)) and not compiled(torch.ones(2))


def test_without_a_fake_function_the_graph_ends(shift):
    def f(x):
        return shift(x * 2, 3) * x

    compiled = torch.compile(f)
    torch.testing.assert_close(compiled(torch.ones(2)), f(torch.ones(2)))
    assert counters["graph_break"]


def test_gradients_without_a_formula_end_the_graph(shift):
    shift.register_fake(lambda x, k: torch.empty_like(x))
    compiled = torch.compile(lambda x: shift(x, 3) * x, fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [4, 4]
    with pytest.raises(Unsupported, match="register_autograd"):
        compiled(torch.ones(2, requires_grad=True))
