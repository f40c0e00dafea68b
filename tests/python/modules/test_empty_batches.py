"""Attention and Transformer layers with a batch of 0, as PyTorch computes them."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("need_weights", "average"), [(True, True), (True, False), (False, False)])
def test_multi_head_attention(torch, batch_first, training, need_weights, average):
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=batch_first).train(training)
    x = torch.ones((0, 3, 4) if batch_first else (3, 0, 4), requires_grad=True)
    result, weights = attention(x, x, x, need_weights=need_weights, average_attn_weights=average)
    result.sum().backward()
    assert result.shape == x.grad.shape == x.shape
    assert attention.in_proj_weight.grad.abs().sum() == 0
    assert (weights if weights is None else tuple(weights.shape)) == ((0, 3, 3) if average else (0, 2, 3, 3) if need_weights else None)


MASKS = [
    lambda t: {"attn_mask": t.zeros(3, 3)},
    lambda t: {"attn_mask": t.zeros(0, 3, 3)},
    lambda t: {"key_padding_mask": t.zeros(0, 3, dtype=t.bool), "attn_mask": t.zeros(0, 3, 3)},
]


@pytest.mark.parametrize("masks", MASKS)
def test_masks_of_no_entries(torch, masks):
    x = torch.ones(3, 0, 4)
    assert torch.nn.MultiheadAttention(4, 2)(x, x, x, **masks(torch))[0].shape == x.shape


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", ["TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"])
def test_transformer_layers(torch, kind, batch_first, training):
    counts = (1, 1) if kind == "Transformer" else ()
    layer = getattr(torch.nn, kind)(4, 2, *counts, 8, batch_first=batch_first).train(training)
    x = torch.ones((0, 3, 4) if batch_first else (3, 0, 4))
    assert layer(x, *[] if "Encoder" in kind else [x]).shape == x.shape
