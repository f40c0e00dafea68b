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
