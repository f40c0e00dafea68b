"""Elements that a write replaces have a gradient of zero, whatever gradient the written tensor has there."""

from __future__ import annotations

import pytest

INF = float("inf")
WRITES = {
    "zero_": lambda t, y: y[:, 1].zero_(),
    "fill_": lambda t, y: y[:, 1].fill_(3),
    "number": lambda t, y: y.__setitem__((slice(None), 1), 0.0),
    "tensor": lambda t, y: y.__setitem__((slice(None), 1), t.zeros(2, dtype=y.dtype, device=y.device)),
    "copy_": lambda t, y: y.select(1, 1).copy_(t.zeros(2, device=y.device)),
    "transposed": lambda t, y: y.t()[1].zero_(),
    "index_copy_": lambda t, y: y.index_copy_(1, t.tensor([1], device=y.device), t.zeros(2, 1, dtype=y.dtype, device=y.device)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
@pytest.mark.parametrize("name", WRITES)
def test_gradient_of_infinity(torch, name, dtype, device):
    x = torch.arange(1.0, 7.0).reshape(2, 3).to(device, getattr(torch, dtype)).requires_grad_()
    y = x.clone()
    WRITES[name](torch, y)
    y.backward(torch.full((2, 3), INF, dtype=y.dtype, device=device))
    assert x.grad.real.tolist() == [[INF, 0, INF]] * 2


def test_roots_of_replaced_elements(torch):
    x = torch.tensor([4.0, 9.0, 16.0], requires_grad=True)
    y = x.clone()
    y[1] = 0
    y.sqrt().sum().backward()
    assert x.grad.tolist() == [0.25, 0, 0.125]


def test_scatters_of_views(torch):
    x = torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()
    for made in (
        x.select_scatter(torch.zeros(2), 1, 1), x.slice_scatter(torch.zeros(2, 1), 1, 1, 2), x.clone().copy_(torch.zeros(2, 3)),
    ):  # fmt: skip
        (got,) = torch.autograd.grad(made, x, torch.full((2, 3), INF), allow_unused=True)
        assert got[:, 1].tolist() == [0, 0]


def test_second_derivatives(torch):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)

    def f(x):
        y = x**3
        y[1] = x[0] * 2
        return (y * y).sum()

    assert torch.autograd.gradcheck(f, x)
    assert torch.autograd.gradgradcheck(f, x)
