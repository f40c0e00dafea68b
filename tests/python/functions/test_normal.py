"""torch.normal() with tensors."""

from __future__ import annotations


def test_gradients_and_infinite_means(torch):
    """torch.normal() is constant to the gradients, as in PyTorch."""
    mean, std = torch.tensor([0.0, float("inf")], requires_grad=True), torch.ones(2, 1, requires_grad=True)
    samples = torch.normal(mean, std)
    assert samples.requires_grad and samples.shape == (2, 2) and samples[:, 1].isinf().all() and samples[:, 0].isfinite().all()
    samples[:, 0].sum().backward()
    assert mean.grad.tolist() == [0, 0] and std.grad.tolist() == [[0], [0]]
