"""Floats that a compiled function computes from sizes: one graph for all sizes, with the numbers of each call."""

from __future__ import annotations

import math

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters


def scaled(x):
    return x * x.shape[-1] ** -0.5


def mean(x):
    return x.sum(0) / x.shape[0] * (1 / x.shape[0])


def root(x):
    return (x + math.sqrt(x.shape[0] + 1)) / float(x.shape[0])


def returned(x):
    n = x.shape[0] / 2
    return x - n, n, x.numel() * 0.5


def nested(x):
    scale = (x.shape[0] * 1.5 - 1) / (x.numel() ** 0.5)
    return x * scale + scale


def of_powers(x):
    n = x.shape[0] ** 2
    return x + 1, n


def of_ints(x, k=3):
    return x * (k / x.shape[0])


def two_uses(x):
    s = x.shape[0] ** -0.5
    return x * s, (x + 1) / s


def in_a_loop(x):
    n = x.shape[0]
    for i in range(3):
        x = x * (i + 1 / n)
    return x


def with_gradient(x):
    return (x * x.shape[0] ** -0.5).sin().sum() / x.numel()


FUNCTIONS = [scaled, mean, root, returned, nested, of_powers, of_ints, two_uses, in_a_loop, with_gradient]


def compare(got, want):
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            compare(a, b)
    elif isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-7)
    else:
        assert type(got) is type(want) and got == want


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_two_graphs_for_all_sizes(function, backend):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for n in (3, 4, 7, 12, 5, 4, 3):
        x, y = (torch.linspace(-1, 1, n * n).reshape(n, n).requires_grad_() for _ in range(2))
        got, want = compiled(x), function(y)
        compare(got, want)
        for result, leaf in ((got, x), (want, y)):
            (result[0] if isinstance(result, tuple) else result).sum().backward()
            assert leaf.grad is not None
        compare(x.grad, y.grad)
    assert counters["stats"]["unique_graphs"] == 2 and not counters["internal"]


def test_decisions_by_floats_are_constants():
    def function(x):
        return x * 2 if x.shape[0] / 2 > 3.4 else x * 3

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    for n in (2, 5, 6, 7, 8, 20, 3):
        x = torch.ones(n)
        assert torch.equal(compiled(x), function(x))


def test_many_alternating_sizes():
    def function(x):
        y = x.relu()
        for _ in range(20):
            y = y * 0.5 + x
        return y

    torch._dynamo.reset()
    compiled = torch.compile(function)
    inputs = [torch.arange(n * 2.0).reshape(n, 2) - n for n in range(2, 60)]
    for _ in range(3):
        for x in inputs:
            torch.testing.assert_close(compiled(x), function(x))
    assert counters["stats"]["unique_graphs"] == 2
