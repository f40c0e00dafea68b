"""In-place writes to the parts of complex tensors, and to real tensors as complex ones, while gradients are recorded."""

from __future__ import annotations

import pytest

import teletensor as torch

X, Y = [i / 3 + 0.1 for i in range(4)], [i / 5 - 0.3 for i in range(4)]
Z = [complex(x, y) for x, y in zip(X, Y)]


def part_of_a_transform(x, y):
    part = torch.fft.ifft(torch.fft.fft(x) * 2).real
    part += y
    return part


def product(z, y):
    w = z * 2
    w.real.mul_(y)
    return w


def section(z, y):
    w = z * 2
    w.imag[1:3] = y[:2]
    return w


def zeros(z):
    w = z * 2
    torch.view_as_real(w)[:, 1].zero_()
    return w * (1 + 2j)


def as_complex(x):
    w = (x * 2).reshape(2, 2)
    torch.view_as_complex(w).mul_(1j)
    return w


def part_of_a_complex_view(x, y):
    v = torch.view_as_complex((x * 2).reshape(2, 2))
    v.real.add_(y[:2])
    return v


def transposed(z, y):
    w = (z * 2).reshape(2, 2).t()
    w.real[0] *= y[:2]
    w.imag.add_(w.real)
    return w


def base_written(z, y):
    w = z * 2
    part = w.real
    w.mul_(y)
    return part * 1


def both_parts(x):
    w = torch.zeros(4, dtype=torch.complex128)
    w.real.copy_(x)
    w.imag.copy_(x * 2)
    return w


CASES = [
    (part_of_a_transform, X, Y), (product, Z, Y), (section, Z, Y), (zeros, Z), (as_complex, X), (part_of_a_complex_view, X, Y),
    (transposed, Z, Y), (base_written, Z, Y), (both_parts, X),
]  # fmt: skip


@pytest.mark.parametrize("function, inputs", [(f, inputs) for f, *inputs in CASES], ids=[f.__name__ for f, *_ in CASES])
def test_gradients(function, inputs):
    inputs = [torch.tensor(t, dtype=torch.complex128 if t is Z else torch.float64, requires_grad=True) for t in inputs]
    assert torch.autograd.gradcheck(function, inputs) and torch.autograd.gradgradcheck(function, inputs)
    want = torch.autograd.grad(function(*inputs).abs().sum(), inputs, allow_unused=True)
    got = torch.autograd.grad(torch.compile(function)(*inputs).abs().sum(), inputs, allow_unused=True)
    assert all(a is b or torch.allclose(a, b) for a, b in zip(got, want))
