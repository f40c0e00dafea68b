"""Products, layers and attention of jagged tensors."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor
from .base import not_implemented
from .engine import call
from .padding import jagged_of, padded
from .pointwise import common
from .tensor import NestedTensor, handlers, wrapped


def _dense(name: str, *tensors: Any) -> None:
    for tensor in tensors:
        if tensor is not None and getattr(tensor, "is_nested", False):
            raise not_implemented(name, "only its input may be nested")


def _linear(arguments: list, into: list | None) -> NestedTensor:
    tensor, weight, bias = arguments
    _dense("linear", weight, bias)
    if into is not None or not isinstance(tensor, NestedTensor):
        raise not_implemented("linear")
    if tensor._ragged_idx == tensor.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor with a ragged last dimension")
    return tensor._with(call("linear", [tensor._elements, weight, bias]))


def _unsupported(a: Any, b: Any) -> RuntimeError:
    shapes = [getattr(t, "_size", None) or tuple(t.shape) for t in (a, b)]
    return RuntimeError(f"matmul(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}")


def _matmul(arguments: list, into: list | None) -> Any:
    a, b = arguments
    if into is not None:
        raise not_implemented("matmul.out")
    if isinstance(a, NestedTensor) and isinstance(b, NestedTensor):
        return _product_of_nested(a, b)
    if isinstance(a, NestedTensor):
        if a._ragged_idx >= a.dim() - 1:
            raise _unsupported(a, b)
        if b.dim() == 2 and a.dim() > 2:  # (B, j, D) (D, E)
            return a._with(_C.torch.matmul(a._elements, b))
        if a.dim() < 3 or a.dim() != b.dim():
            raise _unsupported(a, b)
        result = _C.torch.matmul(padded(a, 0), b)  # (B, j, D) (B, D, E)
        return jagged_of(result, a._ragged, a._total, a._ragged_idx)
    if b._ragged_idx < 2:
        raise _unsupported(a, b)
    if a.dim() == 2 and b.dim() > 2 and b._ragged_idx != b.dim() - 2:  # (D, E) (B, E, j)
        return b._with(_C.torch.matmul(a, b._elements))
    if b.dim() < 3 or a.dim() != b.dim() or b._ragged_idx == b.dim() - 2:
        raise _unsupported(a, b)
    return jagged_of(_C.torch.matmul(a, padded(b, 0)), b._ragged, b._total, b._ragged_idx)


def _product_of_nested(a: NestedTensor, b: NestedTensor) -> Any:
    if a.dim() > 3 and b.dim() == a.dim() and a._ragged_idx < a.dim() - 2:  # (B, j, D, E) (B, j, E, F)
        if a._ragged != b._ragged or a._ragged_idx != b._ragged_idx:
            raise _unsupported(a, b)
        return a._with(_C.torch.matmul(a._elements, b._elements))
    if a.dim() == b.dim() == 3 and a._ragged_idx == 2 and b._ragged_idx == 1 and a._ragged == b._ragged:
        return _C.torch.matmul(padded(a, 0), padded(b, 0))  # (B, D, j) (B, j, E)
    raise _unsupported(a, b)


def _bmm(arguments: list, into: list | None) -> Any:
    if arguments[0].dim() != 3:
        raise ValueError("bmm(): input must be 3D")
    if arguments[1].dim() != 3:
        raise ValueError("bmm(): mat2 must be 3D")
    return _matmul(arguments, into)


def _norm(name: str):
    def handle(arguments: list, into: list | None) -> NestedTensor:
        tensor, shape, *weights, eps = arguments
        _dense(name, *weights)
        if into is not None or not isinstance(tensor, NestedTensor):
            raise not_implemented(name)
        if len(shape) > tensor.dim() - tensor._ragged_idx - 1:
            raise ValueError(f"{name}(): Normalization over the ragged dim not supported for nested tensors")
        return tensor._with(call(name, [tensor._elements, shape, *weights, eps]))

    return handle


def _layer_norm_over_sequences(arguments: list, into: list | None) -> NestedTensor:
    tensor, eps = arguments
    assert into is None
    ragged, values = tensor._ragged, tensor._elements.flatten(1) if tensor.dim() > 2 else tensor._elements.unsqueeze(1)
    counts = ragged.seqlens() * values.shape[1]

    def mean(of: Tensor) -> Tensor:
        sums = _C.ops.jagged_reduce(of.sum(1), ragged.offsets, ragged.lengths, "sum")
        return _C.ops.jagged_expand(sums / counts, ragged.offsets, ragged.lengths, tensor._total).unsqueeze(1)

    centred = values - mean(values)
    result = centred / (mean(centred.square()) + eps).sqrt()
    return tensor._with(result.reshape(tensor._elements.shape))


def _embedding(arguments: list, into: list | None) -> NestedTensor:
    weight, indices, *rest = arguments
    if into is not None or isinstance(weight, NestedTensor):
        raise not_implemented("embedding", "only its indices may be nested")
    return indices._with(call("embedding", [weight, indices._elements, *rest]))


_SDPA = "scaled_dot_product_attention"


def _check_attention(query: Any, key: Any, value: Any, mask: Any) -> None:
    """Raises an error unless these are jagged tensors (batch, heads, ragged, elements), or without heads."""
    if not all(isinstance(t, NestedTensor) for t in (query, key, value)):
        raise ValueError(f"{_SDPA}: expected query, key and value to be nested tensors of the jagged layout, or none of them")
    if mask is not None:
        raise not_implemented(_SDPA, "attn_mask is not implemented for nested tensors")
    common(_SDPA, [key, value])
    if query.dim() != key.dim() or query.dim() not in (3, 4):
        raise RuntimeError(f"{_SDPA}: expected query, key and value of 3 or 4 dimensions, got {query._size} and {key._size}")
    if any(t._ragged_idx != t.dim() - 2 for t in (query, key)):
        raise not_implemented(_SDPA, "the ragged dimension must be the last but one; use transpose(1, 2)")


def _check_counts(query: NestedTensor, key: NestedTensor) -> None:
    """Raises an error unless query and key have as many sequences, and as many heads: neither is broadcast."""
    if query._size[0] != key._size[0]:
        raise RuntimeError(f"{_SDPA}: expected as many sequences of key and value as of query ({query._size[0]}), got {key._size[0]}")
    if query.dim() == 4 and query._size[1] != key._size[1]:
        raise RuntimeError(f"{_SDPA}: expected as many heads of key and value as of query ({query._size[1]}), got {key._size[1]}")


def _attention(arguments: list, into: list | None) -> NestedTensor:
    """Attention within each sequence: query, key and value are (batch, heads, ragged, elements), or without heads."""
    query, key, value, mask, is_causal, scale, _ = arguments
    if into is not None:
        raise not_implemented(f"{_SDPA}.out")
    _check_attention(query, key, value, mask)
    q, k, v = (t._elements if t.dim() == 4 else t._elements.unsqueeze(0) for t in (query, key, value))
    _check_counts(query, key)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    a, b = query._ragged, key._ragged
    output = _C.ops.jagged_attention_forward(q, k, v, a.offsets, a.lengths, b.offsets, b.lengths, is_causal, factor)[0]
    return wrapped(output if query.dim() == 4 else output.squeeze(0), a, query._ragged_idx)


def _padded_attention(
    query: NestedTensor, key: NestedTensor, value: NestedTensor, dropout_p: float, is_causal: bool, scale: float | None
) -> NestedTensor:
    """Attention composed of operators on padded tensors: for dropout and second derivatives.

    Stores all scores of the longest sequence for each one. Waits for the lengths, unless they are known.
    """
    torch = _C.torch
    q, k, v = padded(query, 0), padded(key, 0), padded(value, 0)
    scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    rows, columns = scores.shape[-2:]
    places = torch.arange(0, columns, device=scores.device)
    lengths = key._ragged.seqlens().unsqueeze(1)
    hidden = (places >= lengths) & (lengths > 0)  # without keys, all weights are those of zeros
    hidden = hidden.reshape(hidden.shape[0], *[1] * (scores.dim() - 2), columns)
    if is_causal:
        hidden = hidden | (places > torch.arange(0, rows, device=scores.device).unsqueeze(1))
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    if dropout_p:
        weights = _C.ops.dropout(weights, dropout_p, True)
    return jagged_of(weights @ v, query._ragged, query._total, query._ragged_idx)


def _attention_with_options(arguments: list, into: list | None) -> NestedTensor:
    """scaled_dot_product_attention() with dropout, groups of queries, or composed of operators that have second derivatives."""
    assert into is None
    query, key, value, mask, dropout_p, is_causal, scale, enable_gqa, composed, _ = arguments
    _check_attention(query, key, value, mask)
    if enable_gqa and query.dim() == 4:
        heads, groups = query._size[1], key._size[1]
        if groups == 0 or heads % groups:
            raise RuntimeError(f"{_SDPA}: expected query's heads ({heads}) to be a multiple of those of key and value ({groups})")
        key, value = (t._with(t._elements.repeat_interleave(heads // groups, 0)) for t in (key, value))
    if dropout_p or composed:
        _check_counts(query, key)
        return _padded_attention(query, key, value, dropout_p, is_causal, scale)
    return _attention([query, key, value, None, is_causal, scale, False], None)


def _conv1d(arguments: list, into: list | None) -> Any:
    raise not_implemented("conv1d", "convolve its unbound sequences")


def _cross_entropy(arguments: list, into: list | None) -> Any:
    raise not_implemented("cross_entropy", "pass the values() of the input and of the target")


handlers["attention with options"] = _attention_with_options
handlers["layer_norm over sequences"] = _layer_norm_over_sequences
handlers.update(
    linear=_linear, matmul=_matmul, bmm=_bmm, layer_norm=_norm("layer_norm"), rms_norm=_norm("rms_norm"), embedding=_embedding,
    attention=_attention, conv1d=_conv1d, cross_entropy=_cross_entropy,
)  # fmt: skip
