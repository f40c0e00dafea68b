"""Products of weights without columns, which ended the engine (a division by zero)."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor import _C

pytestmark = pytest.mark.usefixtures("torch")


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 40])
def test_weights_without_columns(rows):
    x = torch.randn(rows, 0)
    packed, grid = torch.zeros(65, 0, dtype=torch.uint8), torch.rand(0, 65, 2)
    assert torch.equal(_C.ops.int4_weight_mm(x, packed, 64, grid), torch.zeros(rows, 65))
    weight = torch.zeros(65, 0, dtype=torch.int8)
    assert torch.equal(_C.ops.int8_weight_mm(x, weight, torch.rand(65)), torch.zeros(rows, 65))


def test_zero_points_of_weights_are_integers():
    x, weight = torch.zeros(2, 3, dtype=torch.uint8), torch.zeros(2, 3, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="expected weight_zero_point to be integers of 32 bits, got 1.5"):
        _C.ops.int8_linear(x, weight, torch.tensor(0), torch.tensor([1.0, 1.5])).tolist()
