"""Fake quantization beside PyTorch's values, which were recorded on its CPU."""

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


def test_infinities_become_the_ends_of_the_range(torch):
    x = torch.tensor([float("inf"), -float("inf")])
    assert torch.fake_quantize_per_tensor_affine(x, 0.5, 1, -4, 4).tolist() == [1.5, -2.5]


def test_integers_are_rejected(torch):
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.fake_quantize_per_tensor_affine(torch.tensor([1, 2]), 0.5, 1, -4, 4)
