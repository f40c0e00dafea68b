"""Attention of many rows, with and without masks, and its gradients: beside the same written out in float64."""

import math

import pytest

import teletensor as torch
import teletensor.nn.functional as F


def _written_out(q, k, v, causal, mask=None, scale=None):
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    if mask is not None:
        scores = scores + mask
    return F.softmax(scores, -1) @ v


def _heads(t, heads):
    return t.unflatten(-1, (heads, -1)).transpose(1, 2)


SIZES = [(5, 5, 3, 2), (16, 16, 8, 8), (17, 40, 4, 5), (64, 64, 32, 32), (65, 63, 16, 1), (129, 129, 8, 16), (100, 300, 7, 24),
         (300, 270, 16, 16), (6, 1, 1, 1), (65, 63, 32, 16), (129, 270, 48, 32), (70, 300, 16, 64), (5, 9, 64, 48),
         (300, 40, 32, 32), (20, 30, 528, 16)]  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows, columns, depth, width", SIZES)
def test_values_and_gradients(rows, columns, depth, width, dtype, causal):
    torch.manual_seed(rows)
    heads = 2
    given = [
        torch.randn(2, n, heads * d, dtype=torch.float64)
        for n, d in ((rows, depth), (columns, depth), (columns, width))
    ]
    upstream = torch.randn(2, rows, heads * width, dtype=torch.float64)

    def run(attention, kind):
        leaves = [t.to(kind).requires_grad_() for t in given]
        y = attention(*(_heads(t, heads) for t in leaves)).transpose(1, 2).flatten(2)
        return [y.detach(), *torch.autograd.grad(y, leaves, upstream.to(kind))]

    got = run(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), dtype)
    want = run(lambda q, k, v: _written_out(q, k, v, causal), torch.float64)
    for a, b in zip(got, want):
        torch.testing.assert_close(a.double(), b, rtol=1e-4 if dtype is torch.float32 else 1e-9,
                                   atol=3e-6 if dtype is torch.float32 else 1e-11)  # fmt: skip


@pytest.mark.parametrize("rows", [8, 33])
@pytest.mark.parametrize("masked", [False, True])
def test_small_weights(rows, masked):
    """The weight of one of two keys, from 1/2 down to denormal numbers and zero."""
    x = torch.cat([torch.linspace(-110, 0, rows * 100 - 2), torch.tensor([-torch.inf, -1e30])]).view(100, 1, rows, 1)
    keys = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1).expand(100, 1, 2, 1)
    mask = torch.zeros(rows, 2) if masked else None
    x_at = torch.where(x.isinf(), torch.full_like(x, -3e38), x)  # a score of -inf times 0 would be NaN
    y = F.scaled_dot_product_attention(x_at, keys, keys, attn_mask=mask, scale=1.0)
    want = 1 / (1 + torch.exp(-x_at.double()))
    error = (y.double() - want).abs()
    assert (error <= 1e-6 * want + 1.5e-45).all(), (error / want).max()
    assert y.flatten()[-2:].tolist() == [0, 0]


@pytest.mark.parametrize("columns", [40, 300])
def test_large_and_special_scores(columns):
    torch.manual_seed(1)
    q, k, v = torch.randn(1, 1, 20, 4) * 100, torch.randn(1, 1, columns, 4) * 100, torch.randn(1, 1, columns, 3)
    want = _written_out(q.double(), k.double(), v.double(), causal=True)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(y.double(), want, rtol=1e-2, atol=1e-2)  # float32 scores of 1e4 have an error of 1e-3
    assert not y.isnan().any()
    k[0, 0, 7] = torch.nan  # the rows before do not see it
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert not y[0, 0, :7].isnan().any() and y[0, 0, 7:].isnan().all()
    torch.testing.assert_close(y[0, 0, :7].double(), want[0, 0, :7], rtol=1e-2, atol=1e-2)
    q = torch.ones(1, 1, 20, 1)
    k = torch.zeros(1, 1, columns, 1)
    k[0, 0, 3:9] = -torch.inf
    k.requires_grad_()
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = torch.stack([v[0, 0][[c for c in range(r + 1) if not 3 <= c < 9]].mean(0) for r in range(20)])
    torch.testing.assert_close(y[0, 0].detach(), expected)
    (gradient,) = torch.autograd.grad(y.sum(), k)
    assert gradient[0, 0, 3:9].abs().sum() == 0


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("place", ["query", "key", "value", "upstream"])
@pytest.mark.parametrize("rows, columns", [(40, 40), (150, 300)])
@pytest.mark.parametrize("special", [torch.nan, torch.inf])
def test_special_elements(special, rows, columns, place, causal):
    """Results are NaN where they are with a further column of zeros, for which general products compute whole blocks."""
    torch.manual_seed(3)
    given = {"query": torch.randn(1, 2, rows, 32), "key": torch.randn(1, 2, columns, 32),
             "value": torch.randn(1, 2, columns, 16), "upstream": torch.randn(1, 2, rows, 16)}  # fmt: skip
    given[place][0, 1, 27, 5] = special
    results = []
    for padding in (0, 1):
        q, k, v, upstream = (F.pad(t, (0, padding)).requires_grad_() for t in given.values())
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=0.2)
        gradients = torch.autograd.grad(y, (q, k, v), upstream.detach())
        results.append([t[..., : t.size(-1) - padding] for t in (y.detach(), *gradients)])
    assert not all(t.isfinite().all() for t in results[0])
    for got, want in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("size", [3e3, 3.1e4, 3.1e7, 3.1e9, 3.1e12])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_equal_large_scores(size, dtype, causal):
    """The rounding of a score, which is large here, is the same wherever it is computed."""
    q = torch.full((1, 1, 9, 1), size, dtype=dtype, requires_grad=True)
    k = torch.full((1, 1, 9, 1), 1.1, dtype=dtype)
    v = torch.arange(9, dtype=dtype).reshape(1, 1, 9, 1).requires_grad_()
    y = F.scaled_dot_product_attention(q, k, v, scale=0.7, is_causal=causal)
    weights = torch.ones(9, 9).tril() if causal else torch.ones(9, 9)
    weights /= weights.sum(-1, keepdim=True)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(y[0, 0, :, 0].float(), weights @ torch.arange(9.0), rtol=tolerance, atol=tolerance)
    _, gradient = torch.autograd.grad(y.sum(), (q, v))
    torch.testing.assert_close(gradient[0, 0, :, 0].float(), weights.sum(0), rtol=tolerance, atol=tolerance)


def test_rows_without_a_finite_score():
    """All scores of some rows are -inf: without a mask, and with an added one."""
    q = torch.ones(1, 1, 24, 1)
    k = torch.full((1, 1, 6, 1), -torch.inf)
    v = torch.ones(1, 1, 6, 2)
    for mask in (None, torch.zeros(24, 6)):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        assert y.abs().sum() == 0


def test_layout_of_gradients():
    """Gradients of transposed heads need no copy: they have the order of the arguments' dimensions, or are copied."""
    x = torch.randn(2, 40, 24, requires_grad=True)
    q, k, v = (_heads(t, 2) for t in x.chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    (whole,) = torch.autograd.grad(y.square().sum(), x, retain_graph=True)
    parts = torch.autograd.grad(y.square().sum(), [q, k, v])
    joined = torch.cat([t.transpose(1, 2).flatten(2) for t in parts], -1)
    assert torch.equal(whole, joined)
    for given, gradient in zip((q, k, v), parts):
        assert gradient.shape == given.shape


def test_clients_know_the_layout_of_gradients():
    """Hooks, retained gradients and `grad` give gradients whose memory has the order that their strides name."""
    seen = []
    x = torch.randn(2, 40, 24, requires_grad=True)
    q, k, v = (_heads(t, 2) for t in x.chunk(3, -1))
    q.register_hook(lambda g: seen.append(g))
    k.retain_grad()
    loss = F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum()
    seen.extend(torch.autograd.grad(loss, [q, v], retain_graph=True))
    loss.backward()
    for gradient in (*seen, k.grad):
        memory = gradient.as_strided((gradient.numel(),), (1,))
        ordered = gradient.permute(sorted(range(4), key=lambda d: -gradient.stride(d)))
        assert torch.equal(memory, ordered.reshape(-1)) and memory.abs().sum() > 0


def test_half():
    torch.manual_seed(2)
    q, k, v = (torch.randn(2, 2, 50, 16).half().requires_grad_() for _ in range(3))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    grads = torch.autograd.grad(y.float().sum(), [q, k, v])
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    want = _written_out(*wide, causal=True)
    torch.testing.assert_close(y.double(), want, rtol=2e-3, atol=2e-3)
    for got, expected in zip(grads, torch.autograd.grad(want.sum(), wide)):
        torch.testing.assert_close(got.double(), expected, rtol=5e-3, atol=5e-3)
