"""Attention of nested tensors with options, offsets of other dtypes, and sums of long sequences."""

from __future__ import annotations

import pytest

import teletensor as torch

F = torch.nn.functional
LENGTHS = (3, 5, 1)


def _sequences(heads: int, shift: float = 0.0) -> list:
    return [torch.sin(torch.arange(n * heads * 8.0) * 1.7 + shift).reshape(n, heads, 8) for n in LENGTHS]


def _jagged(sequences: list, requires_grad: bool = False) -> torch.Tensor:
    return torch.nested.nested_tensor(sequences, layout=torch.jagged, requires_grad=requires_grad)


def _heads_first(sequences: list) -> list:
    return [t.transpose(0, 1) for t in sequences]


def _math():
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_groups_of_queries(layout, is_causal: bool) -> None:
    queries, keys = _sequences(4), _sequences(2, 1.0)
    want = [
        F.scaled_dot_product_attention(q, k, k, is_causal=is_causal, enable_gqa=True)
        for q, k in zip(_heads_first(queries), _heads_first(keys))
    ]
    if layout == torch.jagged:
        q, k = (_jagged(t).transpose(1, 2) for t in (queries, keys))
    else:
        q, k = (torch.nested.nested_tensor(_heads_first(t)) for t in (queries, keys))
    got = F.scaled_dot_product_attention(q, k, k, is_causal=is_causal, enable_gqa=True).unbind()
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)


def test_groups_that_do_not_divide_the_queries_are_refused() -> None:
    q, k = _jagged(_sequences(4)).transpose(1, 2), _jagged(_sequences(3)).transpose(1, 2)
    with pytest.raises(RuntimeError, match="multiple of those of key"):
        F.scaled_dot_product_attention(q, k, k, enable_gqa=True)


@pytest.mark.parametrize("options", [{}, {"dropout_p": 0.5}])
@pytest.mark.parametrize("heads, count, what", [(1, 3, "heads"), (4, 1, "sequences")])
def test_heads_and_sequences_are_not_broadcast(heads, count, what, options) -> None:
    q, k = _jagged(_sequences(4)).transpose(1, 2), _jagged(_sequences(heads)[:count]).transpose(1, 2)
    for a, b in ((q, k), (k, q)):
        with pytest.raises(RuntimeError, match=f"as many {what}"):
            F.scaled_dot_product_attention(a, b, b, **options)


@pytest.mark.parametrize("is_causal", [False, True])
def test_second_derivatives_with_composed_attention(is_causal: bool) -> None:
    def second(x, values) -> torch.Tensor:
        first = torch.autograd.grad(values(x).square().sum(), x, create_graph=True)[0]
        return torch.autograd.grad((first.values() if first.is_nested else first).sum(), x)[0]

    leaf = _jagged(_sequences(2), requires_grad=True)
    attend = lambda t: F.scaled_dot_product_attention(t, t, t, is_causal=is_causal)  # noqa: E731
    with _math():
        got = second(leaf, lambda x: attend(x.transpose(1, 2)).values())
        want = [second(t.requires_grad_(), lambda x: attend(x.transpose(0, 1))) for t in _sequences(2)]
    for a, b in zip(got.unbind(), want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_dropout_of_attention_weights() -> None:
    x = _jagged([torch.ones(n, 2, 8) for n in LENGTHS], requires_grad=True)
    t = x.transpose(1, 2)
    torch.manual_seed(0)
    dropped = F.scaled_dot_product_attention(t, t, t, dropout_p=0.5)
    assert dropped.shape == t.shape
    # Each result is the number of kept weights, times 2 / length.
    kept = [row * n / 2 for row, n in zip(dropped.detach().unbind(), LENGTHS)]
    assert all(torch.equal(k.round(), k.round().clamp(0, n)) for k, n in zip(kept, LENGTHS))
    assert len({round(v, 3) for v in dropped.values().flatten().tolist()}) > 2
    dropped.values().sum().backward()
    assert bool(x.grad.values().isfinite().all())
    torch.testing.assert_close(F.scaled_dot_product_attention(t, t, t, dropout_p=1.0).values(), torch.zeros(2, 9, 8))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16])
def test_offsets_of_other_integral_dtypes(dtype) -> None:
    values, offsets = torch.arange(15.0).reshape(5, 3), torch.tensor([0, 2, 5], dtype=dtype)
    x = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert x.offsets() is offsets and x.sum(1).tolist() == [values[:2].sum(0).tolist(), values[2:].sum(0).tolist()]
    assert (x + torch.nested.nested_tensor_from_jagged(values, offsets)).values().tolist() == (values * 2).tolist()
    offsets[1] = 1
    assert x.sum(1)[0].tolist() == values[0].tolist() and [t.shape[0] for t in x.unbind()] == [1, 4]
    y = torch.nested.nested_tensor_from_jagged(values, offsets, torch.tensor([1, 2], dtype=dtype))
    assert y.lengths().dtype is dtype and y.sum(1)[1].tolist() == values[1:3].sum(0).tolist()


def test_no_sequences() -> None:
    x = torch.nested.nested_tensor_from_jagged(torch.ones(0, 3), torch.tensor([0]))
    assert tuple(x.sum(1).shape) == (0, 3) and x.unbind() == () or x.unbind() == []


def test_sums_of_long_sequences_are_accumulated_in_wider_numbers() -> None:
    count = (1 << 24) + 2  # beyond 2^24, float32 does not count
    x = torch.nested.nested_tensor_from_jagged(torch.ones(count, 1), torch.tensor([0, count]))
    assert x.sum(1).item() == count
    half = torch.nested.nested_tensor_from_jagged(torch.ones(4096, 1, dtype=torch.bfloat16), torch.tensor([0, 4096]))
    assert half.sum(1).item() == 4096
