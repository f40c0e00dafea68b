"""clamp and hardtanh with limits that are NaN."""

from __future__ import annotations

import math

import pytest


@pytest.mark.parametrize("size", [4, 100])
@pytest.mark.parametrize("limits", [(math.nan, 1.0), (-1.0, math.nan)])
def test_limits_that_are_nan(torch, limits, size):
    """The result is NaN, as in PyTorch."""
    x = torch.linspace(-2, 2, size)
    for result in (torch.clamp(x, *limits), torch.nn.functional.hardtanh(x, *limits), torch.nn.Hardtanh(*limits)(x)):
        assert result.isnan().all()
