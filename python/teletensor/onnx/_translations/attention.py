"""Attention: one operator from opset 23, written out below it."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import Untranslatable, translates


@translates("aten.scaled_dot_product_attention.default")
def attended(
    b: Builder, query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    if dropout_p:
        raise Untranslatable("attention with dropout; call eval() before the export")
    if b.opset >= 23 and query.rank == key.rank == value.rank == 4 and (attn_mask is None or attn_mask.rank in (2, 4)):
        heads_equal = query.shape[1] == key.shape[1]
        if (heads_equal or enable_gqa) and query.shape[0] == key.shape[0]:
            return b.op("Attention", query, key, value, attn_mask, is_causal=int(is_causal) or None, scale=scale)
    return written_out(b, query, key, value, attn_mask, is_causal, scale, enable_gqa)


def written_out(
    b: Builder, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float | None, grouped: bool,
) -> Value:  # fmt: skip
    """softmax(q k' * scale + mask) v; rows without any allowed key are 0."""
    width = query.shape[-1]
    if scale is None and type(width) is not int:
        raise Untranslatable("attention over a dynamic number of features without a scale")
    root = math.sqrt(1 / math.sqrt(width) if scale is None else abs(scale))
    if grouped and query.shape[-3] != key.shape[-3]:
        key, value = (_repeated(b, v, query.shape[-3] // key.shape[-3]) for v in (key, value))
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    scores = b.op("MatMul", query * root, b.transpose(key, order) * (root if scale is None or scale >= 0 else -root))
    allowed = None
    if is_causal:
        rows, columns = b.arange(b.size(query, -2)), b.arange(b.size(key, -2))
        allowed = b.op("GreaterOrEqual", b.unsqueeze(rows, [1]), b.unsqueeze(columns, [0]))
    elif mask is not None and mask.dtype is _C.bool:
        allowed = mask
    elif mask is not None:
        scores = b.op("Add", scores, b.cast(mask, scores.dtype))
    if allowed is not None:
        scores = b.where(allowed, scores, -math.inf, query.dtype)
    weights = b.op("Softmax", scores, axis=-1)
    if mask is not None and not is_causal:
        high = b.op("ReduceMax", scores, b.const([-1], _C.int64), keepdims=1)
        weights = b.where(b.op("Equal", high, b.const(-math.inf, query.dtype)), 0.0, weights, query.dtype)
    return b.op("MatMul", weights, value)


def _repeated(b: Builder, x: Value, times: int) -> Value:
    wide = b.unsqueeze(x, [x.rank - 2])
    sizes: list[Any] = [b.size(x, d) for d in range(x.rank)]
    full = b.expand(wide, [*sizes[:-2], times, *sizes[-2:]])
    sizes[-3] = b.arithmetic("Mul", sizes[-3], times)
    return b.reshape(full, sizes)
