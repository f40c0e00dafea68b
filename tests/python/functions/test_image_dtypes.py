"""Dtypes that functions of images reject, as PyTorch does."""

from __future__ import annotations

import pytest


def test_adaptive_max_pooling_rejects_integers(torch):
    functional = torch.nn.functional
    for dims in (1, 2, 3):
        pool = getattr(functional, f"adaptive_max_pool{dims}d")
        image = torch.arange(2 * 4**dims).reshape(1, 2, *[4] * dims)
        for return_indices in (False, True):
            for x in (image, image.int(), image > 3):
                with pytest.raises(NotImplementedError):
                    pool(x, 2, return_indices=return_indices)
        assert pool(image.float(), 1).flatten().tolist() == [4**dims - 1, 2 * 4**dims - 1]


def test_padding_with_edges_rejects_booleans(torch):
    pad = torch.nn.functional.pad
    x = torch.tensor([[[True, False, False]]])
    for mode in ("reflect", "replicate"):
        with pytest.raises(NotImplementedError):
            pad(x, (1, 1), mode=mode)
        assert pad(x.int(), (1, 1), mode=mode).dtype == torch.int32
    assert pad(x, (1, 1), mode="circular").tolist() == [[[False, True, False, False, True]]]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_resampling_of_integers(torch, mode):
    """Bytes are rounded; other integers cannot represent the weights and are refused, as in PyTorch."""
    x = torch.arange(36).reshape(1, 1, 6, 6) * 7 % 97
    expected = torch.nn.functional.interpolate(x.float(), size=(3, 3), mode=mode, antialias=True)
    for resampled in (
        torch.nn.functional.interpolate(x.to(torch.uint8), size=(3, 3), mode=mode, antialias=True),
        getattr(torch._C._nn, f"_upsample_{mode}2d_aa")(x.to(torch.uint8), [3, 3], False, None, None),
    ):
        assert (resampled.float() - expected).abs().max().item() < 1  # rounded after each dimension
    for dtype in (torch.int32, torch.int64, torch.bool):
        with pytest.raises(NotImplementedError, match="expected input to have a floating dtype"):
            torch.nn.functional.interpolate(x.to(dtype), size=(3, 3), mode=mode, antialias=True)
