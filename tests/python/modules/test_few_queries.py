"""Attention of few queries, whose keys and values are slices of a cache."""

from __future__ import annotations

import numpy as np
import pytest


def expected(q, k, v, mask, is_causal):
    """Softmax(q k^T / sqrt(depth) + mask) v in float64."""
    scores = q.astype("f8") @ np.swapaxes(k, -1, -2).astype("f8") * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("queries", "keys", "depth", "width"), [(1, 300, 24, 40), (2, 43, 96, 16), (4, 17, 96, 96), (3, 600, 5, 7), (5, 64, 33, 8)]
)
@pytest.mark.parametrize("kind", ["plain", "mask", "causal"])
def test_slices_of_a_cache(torch, dtype, queries, keys, depth, width, kind):
    rng = np.random.default_rng(queries)
    q, k, v = (
        rng.standard_normal((2, 3, *sizes)).astype(dtype)
        for sizes in ((queries, depth), (keys + 9, depth), (keys + 9, width))
    )
    mask = rng.standard_normal((2, 1, queries, keys)).astype(dtype) if kind == "mask" else None
    for part in (slice(0, keys), slice(4, 4 + keys)):
        found = torch.nn.functional.scaled_dot_product_attention(
            torch.tensor(q), torch.tensor(k)[:, :, part], torch.tensor(v)[:, :, part],
            attn_mask=None if mask is None else torch.tensor(mask), is_causal=kind == "causal",
        )  # fmt: skip
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(
            found.numpy(), expected(q, k[:, :, part], v[:, :, part], mask, kind == "causal"), tolerance, tolerance
        )


def chosen(q, k, v, mask):
    """Attention as a compiled function finds it, which replaces the scores of excluded keys."""
    scores = q @ k.transpose(-2, -1) * 0.5
    return scores.masked_fill(mask.logical_not(), -float("inf")).softmax(-1) @ v


@pytest.mark.parametrize("queries", [1, 3, 7])
@pytest.mark.parametrize("width", [5, 64, 96, 130])
def test_masks_that_leave_the_first_keys(torch, queries, width):
    torch.manual_seed(3)
    q, k, v = torch.randn(2, 3, queries, width), torch.randn(2, 3, 300, width), torch.randn(2, 3, 300, width)
    compiled = torch.compile(chosen, fullgraph=True)
    for last in (0, 1, 17, 255, 256, 290):
        mask = (torch.arange(300) < last).expand(2, 1, queries, 300).clone()
        mask[0, 0, 0, :] = torch.arange(300) == max(last - 1, 0)
        scores = (q.double() @ k.double().mT) * 0.5
        weights = torch.where(mask, scores, -float("inf")).softmax(-1)
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.5)
        assert torch.allclose(found.double(), weights.nan_to_num(0.0) @ v.double(), atol=1e-4), last
        assert torch.allclose(compiled(q, k, v, mask).double(), weights @ v.double(), atol=1e-4, equal_nan=True), last


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("queries", [1, 3, 7])
@pytest.mark.parametrize("at", [20, 31, 32, 255, 256, 299])
def test_values_behind_the_last_key(torch, dtype, queries, at):
    """A weight of 0 times a value that is infinite or NaN is NaN, wherever the value is; keys there have no effect."""
    torch.manual_seed(4)
    q, k, v = (torch.randn(1, 2, n, 40, dtype=getattr(torch, dtype)) for n in (queries, 300, 300))
    mask = (torch.arange(300) < 20).expand(1, 2, queries, 300).clone()
    compiled = torch.compile(chosen, fullgraph=True)
    k[..., at, 3] = float("nan")
    assert not compiled(q, k, v, mask).isnan().any()
    for value in (float("nan"), float("inf"), -float("inf")):
        v[:, 1, at, 33] = value
        want = torch.zeros(1, 2, queries, 40, dtype=torch.bool)
        want[:, 1, :, 33] = True
        assert torch.equal(compiled(q, k, v, mask).isnan(), want) and torch.equal(chosen(q, k, v, mask).isnan(), want)
        k[..., at, 3] = 0  # scaled_dot_product_attention adds -inf to the score
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.5)
        assert torch.equal(found.isnan(), want)
        k[..., at, 3] = float("nan")
