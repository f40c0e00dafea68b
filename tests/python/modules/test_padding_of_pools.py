"""Maximum pools refuse padding that exceeds half of the window, also where the window is dilated."""

import pytest


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_padding_of_a_dilated_window(torch, ndim):
    pool, x = getattr(torch.nn, f"MaxPool{ndim}d"), torch.ones(1, 1, *[6] * ndim)
    with pytest.raises(RuntimeError, match="half of kernel size"):
        pool(2, stride=1, padding=2, dilation=3)(x)
    assert pool(2, stride=1, padding=1, dilation=3)(x).shape == (1, 1, *[5] * ndim)
