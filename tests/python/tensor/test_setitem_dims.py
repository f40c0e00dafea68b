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
