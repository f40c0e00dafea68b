"""Convolutions with kernels of one element, which are products of the weights with each image where they are small."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("sizes", "results"), [
    ((1, 4, 8, 8), 4), ((3, 16, 5, 7), 6), ((2, 3, 11), 5), ((2, 3, 2, 3, 4), 7), ((1, 64, 9, 9), 64), ((5, 1, 3, 3), 1),
    ((2, 65, 4, 4), 64),
])  # fmt: skip
def test_kernels_of_one_element(torch, sizes, results, has_bias):
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in (sizes, (results, sizes[1], *[1] * (len(sizes) - 2)), (results,)))
    conv = getattr(torch.nn.functional, f"conv{len(sizes) - 2}d")
    expected = np.einsum("nc...,oc->no...", x, w.reshape(results, -1)) + has_bias * b.reshape(-1, *[1] * (len(sizes) - 2))
    tensors = torch.from_numpy(x), torch.from_numpy(w), torch.from_numpy(b) if has_bias else None
    np.testing.assert_allclose(conv(*tensors).numpy(), expected, rtol=1e-4, atol=1e-4)
    turned = tensors[0].transpose(-1, 1).contiguous().transpose(-1, 1)  # another layout
    np.testing.assert_allclose(conv(turned, *tensors[1:]).numpy(), expected, rtol=1e-4, atol=1e-4)
    strided = conv(*tensors, stride=2).numpy()
    every = (slice(None), slice(None), *[slice(None, None, 2)] * (len(sizes) - 2))
    np.testing.assert_allclose(strided, expected[every], rtol=1e-4, atol=1e-4)


def test_images_that_are_not_finite_leave_others_alone(torch):
    x = torch.ones(2, 3, 4, 4)
    x[0, 1, 2, 3] = float("nan")
    found = torch.nn.functional.conv2d(x, torch.ones(2, 3, 1, 1), torch.tensor([0.0, 1.0])).numpy()
    assert np.isnan(found).sum() == 2 and np.isnan(found[0, :, 2, 3]).all() and (found[1, 0] == 3).all() and (found[1, 1] == 4).all()
