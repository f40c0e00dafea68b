"""Attention layers compared with the formula."""

import math

import numpy as np
import pytest


def plain(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    scores = scores if mask is None else scores + mask
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


def test_long_sequences_equal_the_formula(torch):
    q, k, v = (torch.randn(2, 3, 300, 16) for _ in range(3))
    arrays = [t.numpy().astype("float64") for t in (q, k, v)]
    attend = torch.nn.functional.scaled_dot_product_attention
    np.testing.assert_allclose(attend(q, k, v).numpy(), plain(*arrays), rtol=1e-4, atol=1e-5)
    future = np.triu(np.full((300, 300), -np.inf), 1)
    np.testing.assert_allclose(attend(q, k, v, is_causal=True).numpy(), plain(*arrays, future), rtol=1e-4, atol=1e-5)
    mask = torch.rand(2, 1, 300, 300) > 0.3
    added = np.where(mask.numpy(), 0, -np.inf)
    np.testing.assert_allclose(attend(q, k, v, mask).numpy(), plain(*arrays, added), rtol=1e-4, atol=1e-5)


def test_gradients_equal_unblocked_attention(torch):
    q, k, v = (torch.randn(2, 90, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    weights = torch.randn(2, 90, 8, dtype=torch.float64)
    fused = torch.autograd.grad((torch.nn.functional.scaled_dot_product_attention(q, k, v) * weights).sum(), (q, k, v))
    whole = torch.autograd.grad((((q @ k.transpose(1, 2)) / math.sqrt(8)).softmax(-1) @ v * weights).sum(), (q, k, v))
    for a, b in zip(fused, whole):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)


# Relative to the largest element of a result. Products of bfloat16 round weights and gradients to 8 bits.
PRECISIONS = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
MASKS = {
    "none": lambda rows, columns: None,
    "causal": lambda rows, columns: None,
    "rows": lambda rows, columns: np.where(np.arange(rows * columns).reshape(rows, columns) % 7 == 0, -np.inf, 0.25),
    "first column hidden": lambda rows, columns: np.where(np.arange(columns) == 0, -np.inf, 0.0),
}


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_blocks_of_every_size(torch, dtype, mask):
    for heads, rows, columns, depth, width in [
        (8, 64, 64, 32, 32), (1, 128, 256, 64, 64), (3, 129, 257, 40, 24), (2, 300, 100, 16, 48), (4, 500, 300, 33, 31),
        (16, 16, 300, 64, 64), (1, 1, 700, 64, 64), (2, 3, 5, 7, 2), (4, 160, 288, 40, 24), (4, 320, 96, 16, 48),
    ]:  # fmt: skip
        torch.manual_seed(rows)
        shapes = [(1, heads, rows, depth), (1, heads, columns, depth), (1, heads, columns, width)]
        inputs = [torch.randn(*shape).to(getattr(torch, dtype)).requires_grad_() for shape in shapes]
        doubles = [x.detach().double().requires_grad_() for x in inputs]
        grad = torch.randn(1, heads, rows, width).to(getattr(torch, dtype))
        added = MASKS[mask](rows, columns)
        causal = {"is_causal": True} if mask == "causal" else {}
        tensor = None if added is None else torch.tensor(np.broadcast_to(added, (rows, columns))).to(grad.dtype)
        result = torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=tensor, **causal)
        q, k, v = doubles
        scores = q @ k.transpose(-1, -2) / math.sqrt(depth)
        if mask == "causal":
            scores = scores + torch.full((rows, columns), -math.inf, dtype=torch.float64).triu(1)
        elif tensor is not None:
            scores = scores + tensor.double()
        expected = scores.softmax(-1) @ v
        gradients = torch.autograd.grad(result, inputs, grad)
        wanted = torch.autograd.grad(expected, doubles, grad.double())
        for got, want in zip((result, *gradients), (expected, *wanted)):
            assert got.dtype == grad.dtype
            got, want = got.detach().double().numpy(), want.detach().numpy()
            error = np.abs(got - want).max() / max(np.abs(want).max(), 0.1)  # one visible column: no gradients
            assert error < PRECISIONS[dtype], (heads, rows, columns, depth, width, error)


def test_fully_masked_rows_are_zero(torch):
    x = torch.randn(2, 4)
    mask = torch.tensor([[False, False], [True, False]])
    result = torch.nn.functional.scaled_dot_product_attention(x, x, x, mask)
    assert result[0].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(result[1].numpy(), x[0].numpy(), rtol=1e-6)


@pytest.mark.usefixtures("device")
def test_nan_scores_are_not_treated_as_masked(torch):
    q, k, v = (torch.randn(1, 1, 4, 8) for _ in range(3))
    k[0, 0, 1, 0] = math.nan
    assert torch.nn.functional.scaled_dot_product_attention(q, k, v).isnan().all().item()
    q[0, 0, 2] = math.nan
    k = torch.randn(1, 1, 4, 8)
    rows = torch.nn.functional.scaled_dot_product_attention(q, k, v).isnan().all(-1)
    assert rows.tolist() == [[[False, False, True, False]]]


def test_mask_has_gradients(torch):
    x, mask = torch.randn(3, 4), torch.zeros(3, 3, requires_grad=True)
    torch.nn.functional.scaled_dot_product_attention(x, x, x, mask).square().sum().backward()
    assert mask.grad.abs().sum().item() > 0


def test_multihead_attention_with_and_without_weights_agree(torch):
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(3, 5, 8)
    padding = torch.tensor([[False] * 5, [False] * 4 + [True], [False] * 3 + [True] * 2])
    with_weights, shares = layer(x, x, x, key_padding_mask=padding)
    without, none = layer(x, x, x, key_padding_mask=padding, need_weights=False)
    assert none is None and shares.shape == (3, 5, 5)
    np.testing.assert_allclose(with_weights.detach().numpy(), without.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shares.sum(-1).detach().numpy(), np.ones((3, 5)), rtol=1e-5)
    assert shares[2, :, 3:].abs().sum().item() == 0


def test_multihead_attention_with_other_widths(torch):
    layer = torch.nn.MultiheadAttention(8, 2, kdim=6, vdim=4, add_bias_kv=True, add_zero_attn=True)
    result, shares = layer(torch.randn(5, 2, 8), torch.randn(7, 2, 6), torch.randn(7, 2, 4))
    assert result.shape == (5, 2, 8) and shares.shape == (2, 5, 9)
    assert set(dict(layer.named_parameters())) == {
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias", "bias_k", "bias_v"
    }  # fmt: skip


def test_causal_encoder_ignores_later_tokens(torch):
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
    )
    net = torch.nn.TransformerEncoder(layer, 2)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(6)
    x = torch.randn(1, 6, 8)
    y = x.clone()
    y[:, 4:] = 0.0
    a, b = net(x, mask=mask).detach().numpy(), net(y, mask=mask).detach().numpy()
    np.testing.assert_allclose(a[:, :4], b[:, :4], rtol=1e-4, atol=1e-5)
    assert abs(a[:, 4:] - b[:, 4:]).max() > 1e-3


def test_transformer_trains(torch):
    net = torch.nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
    source, target = torch.randn(5, 2, 8), torch.randn(4, 2, 8)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = (net(source, target) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[-1].item() < losses[0].item()
    with pytest.raises(RuntimeError, match="equal to d_model"):
        net(torch.zeros(5, 2, 6), target)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(
    "shape", [(1, 1, 64, 96), (2, 1, 1, 96), (1, 4, 64, 1), (2, 4, 64, 96), (96,), (64, 96), (1, 1)]
)
def test_masks_are_broadcast(torch, dtype, shape):
    q, k, v = (torch.randn(2, 4, n, 64).to(getattr(torch, dtype)) for n in (64, 96, 96))
    mask = torch.randn(*shape).to(q.dtype)
    result = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    expected = plain(*(t.double().numpy() for t in (q, k, v)), mask.double().numpy())
    assert np.abs(result.double().numpy() - expected).max() < PRECISIONS[dtype]
