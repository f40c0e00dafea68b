"""Assignments of values that have further outer dimensions, of one element."""

from __future__ import annotations

import pytest

import teletensor as torch


@pytest.mark.parametrize("size", [5, 40_000])
def test_outer_dimensions_of_one_element_are_dropped(size):
    values = torch.arange(float(size))
    x = torch.zeros(size)
    x[:] = values.reshape(1, 1, size)
    assert torch.equal(x, values)
    rows = torch.zeros(3, size)
    rows[1:] = values.reshape(1, 1, 1, size)
    assert torch.equal(rows[2], values) and torch.equal(rows[0], torch.zeros(size))


def test_into_channels_last_and_with_gradient():
    x = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    values = torch.arange(120.0).reshape(1, 2, 3, 4, 5).requires_grad_()
    x[:] = values
    assert torch.equal(x.detach(), values.detach()[0])
    (x * 2).sum().backward()
    assert torch.equal(values.grad, torch.full_like(values, 2.0))


def test_dimensions_of_one_element_with_an_index():
    """An assignment drops them, index_put() does not, as in PyTorch."""
    i, mask = torch.tensor([1, 2]), torch.tensor([False, True, True, False])
    for index in (i, mask):
        x, values = torch.zeros(4), torch.tensor([[[5.0, 6.0]]], requires_grad=True)
        x[index] = values
        assert x.tolist() == [0, 5, 6, 0]
        (x * torch.arange(4.0)).sum().backward()
        assert values.grad.tolist() == [[[1, 2]]]
        with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape .* cannot be broadcast"):
            torch.zeros(4).index_put((index,), values).tolist()
    x = torch.zeros(5, 3)
    x[:, i] = torch.ones(1, 5, 2)
    assert x.sum().item() == 10

    def assigned(values):
        x = torch.zeros(4) + 0 * values.sum()
        x[i] = values
        return x

    assert torch.vmap(assigned)(torch.ones(3, 1, 2)).tolist() == [[0, 1, 1, 0]] * 3
