"""Loops of Programs that run often are planned once: every run has the bits of single calls, whatever its tensors are."""

from __future__ import annotations

import pytest

import teletensor as torch

SIZES = [(16,), (100,), (7, 33), (5, 1000)]


def longer(x, y):
    for i in range(70):
        x = x * 0.5 + y if i % 3 else x - float(i)
    return x


def several(x, y):
    scaled = x * 2
    shifted = scaled.tanh() + y
    return scaled, (shifted > 0).to(x.dtype), shifted.square() + scaled


def powers(x, y):
    return (x**2 + y**3).sqrt() * (x + 4) ** -0.5


def total(x, y):
    product = x * y + x
    return product, product.sum(), (x - y).square().mean(-1)


def broadcast(x, y):
    row = y[..., :1] if y.dim() > 1 else y
    return (x + row) * row - x


def sums(x, y):
    for i in range(60):  # the factor is a parameter, not an operand of the loop
        x = torch.add(x, float(i), alpha=2)
    return x - y


FUNCTIONS = [longer, several, powers, total, broadcast, sums]


def bits(values) -> list:
    return [t.tolist() for t in (values if isinstance(values, tuple) else (values,))]


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_run_has_the_bits_of_single_calls(function, dtype):
    for size in SIZES:
        make = lambda: torch.rand(size, dtype=getattr(torch, dtype))  # noqa: E731
        program = torch.compiler.trace(function, make(), make())
        for k in range(7):
            x, y = make(), make()
            if k == 5:
                y = x  # one tensor as both arguments
            if k == 6 and len(size) == 2:
                x, y = torch.rand(size[::-1], dtype=x.dtype).t(), make()  # other strides
            assert bits(program(x, y)) == bits(function(x, y))


def test_numbers_of_equal_chains_are_their_own(torch):
    x = torch.rand(300)
    for number in (1.0, 2.0, 3.0):
        program = torch.compiler.trace(lambda x: (x + number) * number - x, x)  # noqa: B023
        for _ in range(5):
            assert torch.equal(program(x), (x + number) * number - x)


def test_results_of_runs_are_tensors_of_their_own(torch):
    x = torch.rand(64)
    program = torch.compiler.trace(lambda x: (x + 1) * 2 - x, x)
    results = [program(x) for _ in range(6)]
    results[-1].zero_()
    assert all(torch.equal(result, (x + 1) * 2 - x) for result in results[:-1])
    x.add_(1)
    assert torch.equal(program(x), (x + 1) * 2 - x)
