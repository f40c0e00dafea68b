"""Elements by indices: gather, index, embedding, take, masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import Untranslatable, translates


@translates("aten.gather.default")
def _gather(b: Builder, self: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    del sparse_grad
    if self.shape == () or index.shape == ():
        flat = b.reshape(self, [-1])
        return b.op("Gather", flat, index, axis=0)
    return b.op("GatherElements", self, index, axis=dim)


@translates("aten.take_along_dim.default")
def _take_along_dim(b: Builder, self: Value, indices: Value, dim: int | None = None) -> Value:
    if dim is None:
        return b.op("GatherElements", b.reshape(self, [-1]), b.reshape(indices, [-1]), axis=0)
    dim = dim % self.rank
    for d in range(self.rank):
        if d != dim and self.shape[d] != indices.shape[d]:
            raise Untranslatable("take_along_dim of sizes that are broadcast")
    return b.op("GatherElements", self, indices, axis=dim)


@translates("aten.take.default")
def _take(b: Builder, self: Value, index: Value) -> Value:
    return b.op("Gather", b.reshape(self, [-1]), index, axis=0)


@translates("aten.embedding.default")
def _embedding(
    b: Builder, weight: Value, indices: Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Value:  # fmt: skip
    del padding_idx, scale_grad_by_freq, sparse  # they concern gradients
    return b.op("Gather", weight, indices, axis=0)


@translates("aten.nonzero.default")
def _nonzero(b: Builder, self: Value) -> Value:
    return b.op("Transpose", b.op("NonZero", self), perm=[1, 0])


@translates("aten.masked_select.default")
def _masked_select(b: Builder, self: Value, mask: Value) -> Value:
    ones = b.expand(b.const(True, _C.bool), b.shape_of(self), self.shape)
    full = b.op("And", mask, ones)
    wide = b.expand(self, b.op("Shape", full))
    return b.op("Compress", b.reshape(wide, [-1]), b.reshape(full, [-1]))


def plan(indices: Sequence[Value | None], rank: int) -> tuple[list[int], list[int]]:
    """The indexed dimensions and the others."""
    used = [d for d, v in enumerate(indices) if v is not None]
    return used, [d for d in range(rank) if d not in used]


def expanded_masks(b: Builder, self: Value, indices: Sequence[Any]) -> list[Value | None]:
    """The indices without masks: a mask is replaced by the places of its true elements, one vector for each dimension."""
    made: list[Value | None] = []
    for v in indices:
        if v is None or v.dtype is not _C.bool:
            made.append(None if v is None else b.cast(v, _C.int64))
            continue
        places = b.op("NonZero", v)
        made += [b.op("Gather", places, b.const(d, _C.int64), axis=0, shape=(None,)) for d in range(v.rank)]
    if len(made) > self.rank:
        raise Untranslatable("more indices than dimensions")
    return made


def common(b: Builder, indices: Sequence[Value]) -> list[Value]:
    """Indices that are broadcast to common sizes."""
    if len({v.shape for v in indices}) == 1 and None not in (indices[0].shape or ()):
        return list(indices)
    if len(indices) > 1 and all(v.shape == (None,) for v in indices):
        return list(indices)
    total = None
    for v in indices:
        total = (
            b.op("Mul", v, b.const(0, _C.int64))
            if total is None
            else b.op("Add", total, b.op("Mul", v, b.const(0, _C.int64)))
        )
    sizes = b.op("Shape", total)
    rank = max(v.rank for v in indices)
    return [b.expand(v, sizes, (None,) * rank) for v in indices]


@translates("aten.index.Tensor aten._unsafe_index.Tensor")
def indexed(b: Builder, self: Value, indices: Sequence[Value | None]) -> Value:
    found = expanded_masks(b, self, indices)
    used, rest = plan(found, self.rank)
    if not used:
        return self
    if len(used) == 1:
        return b.op("Gather", self, found[used[0]], axis=used[0])
    vectors = common(b, [v for v in found if v is not None])
    n = vectors[0].rank
    moved = b.transpose(self, [*used, *rest])
    stacked = b.op("Concat", *(b.unsqueeze(v, [-1]) for v in vectors), axis=-1)
    made = b.op("GatherND", moved, stacked, shape=(None,) * (n + len(rest)))
    if used == list(range(used[0], used[0] + len(used))) and used[0]:
        lead = used[0]  # the indexed dimensions stay where they were
        made = b.transpose(made, [*range(n, n + lead), *range(n), *range(n + lead, n + len(rest))])
    return made


@translates(
    "aten.embedding_bag.default aten._embedding_bag.default aten._embedding_bag_forward_only.default aten.embedding_bag.padding_idx"
)
def _embedding_bag(
    b: Builder, weight: Value, indices: Value, offsets: Value, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Value | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> list[Value | None]:  # fmt: skip
    """Bags as a matrix of which element belongs to which bag, times the rows."""
    del scale_grad_by_freq, sparse
    if padding_idx is not None and padding_idx >= 0:
        raise Untranslatable("embedding_bag with padding_idx")
    if mode == 2:
        raise Untranslatable("embedding_bag of the mode 'max'")
    indices, offsets = b.cast(indices, _C.int64), b.cast(offsets, _C.int64)
    rows = b.op("Gather", weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = b.op("Mul", rows, b.unsqueeze(per_sample_weights, [-1]))
    if include_last_offset:
        starts, ends = b.slice(offsets, 0, 0, -1), b.slice(offsets, 0, 1, 2**62)
    else:
        starts = offsets
        ends = b.op("Concat", b.slice(offsets, 0, 1, 2**62), b.op("Shape", indices), axis=0)
    line = b.arange(b.size(indices, 0))
    inside = b.op("And", b.op("GreaterOrEqual", line, b.op("Unsqueeze", starts, b.const([1], _C.int64))),
                  b.op("Less", line, b.op("Unsqueeze", ends, b.const([1], _C.int64))))  # fmt: skip
    matrix = b.cast(inside, weight.dtype)
    total = b.op("MatMul", matrix, rows)
    if mode == 1:
        count = b.op("ReduceSum", matrix, b.const([1], _C.int64), keepdims=1)
        total = b.op("Div", total, b.op("Max", count, b.const(1, weight.dtype)))
    return [total, None, None, None]
