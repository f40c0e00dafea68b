"""Gradients of attention whose mask excludes all keys of a row, recorded for further derivatives."""

import pytest

import teletensor as torch
import teletensor.nn.functional as F


def _rows():
    return torch.tensor([[True, True, False], [False, False, False], [True, False, False]])


def _attention(q, mask):
    return F.scaled_dot_product_attention(q, q * 2, q.cos(), attn_mask=mask)


@pytest.mark.parametrize("masked", ["bool", "added"])
def test_recorded_gradients_are_those_that_are_not(masked):
    torch.manual_seed(0)
    mask = _rows() if masked == "bool" else torch.zeros(3, 3).masked_fill(~_rows(), -torch.inf)
    x = torch.randn(1, 3, 4, requires_grad=True)
    (plain,) = torch.autograd.grad(_attention(x, mask).square().sum(), x)
    (recorded,) = torch.autograd.grad(_attention(x, mask).square().sum(), x, create_graph=True)
    assert plain.isfinite().all()
    torch.testing.assert_close(recorded.detach(), plain)
    (second,) = torch.autograd.grad(recorded.square().sum(), x)
    assert second.isfinite().all() and second.abs().sum() > 0
    direction, step = torch.randn(1, 3, 4).double(), 1e-5
    x64, mask64 = x.detach().double(), mask if masked == "bool" else mask.double()
    sums = []
    for sign in (-1, 1):
        y = (x64 + sign * step * direction).requires_grad_()
        sums.append(torch.autograd.grad(_attention(y, mask64).square().sum(), y)[0].square().sum())
    expected = (sums[1] - sums[0]) / (2 * step)
    torch.testing.assert_close((second.double() * direction).sum(), expected, rtol=1e-3, atol=1e-3)


def test_transforms():
    q, mask = torch.ones(1, 2, 2), torch.tensor([[True, True], [False, False]])
    gradient = torch.func.grad(lambda q: F.scaled_dot_product_attention(q, q * 2, q * 3, attn_mask=mask).sum())(q)
    torch.testing.assert_close(gradient, torch.full((1, 2, 2), 1.5))  # PyTorch's


def test_gradient_of_the_mask():
    mask = torch.zeros(3, 3).masked_fill(~_rows(), -torch.inf).requires_grad_()
    q = torch.randn(1, 3, 4, requires_grad=True)
    _attention(q, mask).square().sum().backward()
    assert q.grad.isfinite().all() and mask.grad.isfinite().all()
    assert mask.grad[1].tolist() == [0, 0, 0]
