"""Fake quantization, compared with values that PyTorch computed on a CPU."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("device")

INPUT = [float("nan"), 6e4, -6e4, 0.26, 0.25, 0.75, -3.0, 5.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_values_and_straight_through_gradient(torch, dtype):
    x = torch.tensor(INPUT, dtype=getattr(torch, dtype), requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.5, 1, -4, 4)
    assert y.dtype is x.dtype
    assert y.tolist() == [-2.5, 1.5, -2.5, 0.5, 0.0, 1.0, -2.5, 1.5]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("scale", "number", "value", "slope"),
    [
        (0.641, 2.884500026702881, 2.563999891281128, 0.0),
        (0.026, 0.11700000613927841, 0.10400000214576721, 1.0),
        (0.859, 3.8655002117156982, 3.436000108718872, 1.0),
    ],
)
def test_gradient_rounds_as_the_value(torch, scale, number, value, slope):
    """Numbers halfway between the last integer of the range and the next: rounding 1 / scale differently changes the result."""
    x = torch.tensor([number], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, scale, 0, -4, 4)
    assert y.item() == value
    y.sum().backward()
    assert x.grad.item() == slope


def test_gradient_of_bfloat16_rounds_as_the_value(torch):
    """The expected sums were computed by PyTorch."""
    x = torch.linspace(-3, 3, 4001).to(torch.bfloat16).requires_grad_()
    torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -4, 4).sum().backward()
    assert x.grad.float().sum().item() == 601
    x.grad = None
    torch.fake_quantize_per_tensor_affine(x, 0.3, 100, 96, 104).sum().backward()
    assert x.grad.float().sum().item() == 1797


def test_infinities_are_clamped_to_the_range(torch):
    x = torch.tensor([float("inf"), -float("inf")])
    assert torch.fake_quantize_per_tensor_affine(x, 0.5, 1, -4, 4).tolist() == [1.5, -2.5]


def test_integers_are_rejected(torch):
    with pytest.raises(NotImplementedError):
        torch.fake_quantize_per_tensor_affine(torch.tensor([1, 2]), 0.5, 1, -4, 4)
