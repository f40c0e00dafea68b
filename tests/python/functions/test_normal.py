"""torch.normal() with tensors."""

from __future__ import annotations

import pytest


def test_gradients_and_infinite_means(torch):
    """torch.normal() is constant to the gradients, as in PyTorch."""
    mean, std = torch.tensor([0.0, float("inf")], requires_grad=True), torch.ones(2, 1, requires_grad=True)
    samples = torch.normal(mean, std)
    assert samples.requires_grad and samples.shape == (2, 2) and samples[:, 1].isinf().all() and samples[:, 0].isfinite().all()
    samples[:, 0].sum().backward()
    assert mean.grad.tolist() == [0, 0] and std.grad.tolist() == [[0], [0]]


@pytest.mark.parametrize("draw", [
    lambda t: t.normal(t.tensor([0.0]), t.tensor([-1.0])), lambda t: t.normal(0.0, t.tensor([1.0, -1.0])),
    lambda t: t.normal(0.0, t.tensor([float("nan")])), lambda t: t.normal(t.zeros(2), t.tensor([1.0, -1.0], dtype=t.float64)),
])  # fmt: skip
def test_negative_deviations_are_refused(torch, draw):
    with pytest.raises(RuntimeError, match="normal expects all elements of std >= 0.0"):
        draw(torch).tolist()
