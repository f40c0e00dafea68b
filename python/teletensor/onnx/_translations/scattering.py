"""Writes of elements, in functional form: scatter, index_put, slice_scatter and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from ..._functions import finfo, iinfo
from .._builder import Builder, Value
from .._registry import translates
from .indexing import common, expanded_masks, plan

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


def _elements(b: Builder, self: Value, dim: int, index: Value, source: Value, reduction: str = "none") -> Value:
    if self.shape == ():
        made = _elements(b, b.reshape(self, [1]), 0, b.reshape(index, [1]), b.reshape(source, [1]), reduction)
        return b.reshape(made, [])
    if index.shape == ():
        index, source = b.reshape(index, [1]), b.reshape(source, [1])
    if source.shape != index.shape:
        for d in range(index.rank):  # the source may be larger
            if source.shape[d] != index.shape[d]:
                source = b.slice(source, d, 0, b.size(index, d))
    return b.op("ScatterElements", self, index, source, axis=dim, reduction=reduction, shape=self.shape)


@translates("aten.scatter.src aten.scatter.reduce")
def _scatter(b: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str | None = None) -> Value:
    return _elements(b, self, dim, index, src, "none" if reduce is None else _REDUCTIONS[reduce])


@translates("aten.scatter.value aten.scatter.value_reduce")
def _scatter_value(b: Builder, self: Value, dim: int, index: Value, value: Any, reduce: str | None = None) -> Value:
    source = b.expand(b.value(value, self.dtype), b.shape_of(index), index.shape)
    return _elements(b, self, dim, index, source, "none" if reduce is None else _REDUCTIONS[reduce])


@translates("aten.scatter_add.default")
def _scatter_add(b: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    return _elements(b, self, dim, index, src, "add")


@translates("aten.scatter_reduce.two")
def combined(
    b: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True
) -> Value:
    """A mean is a sum divided by a count. Without the tensor itself, written places start with the reduction's neutral element."""
    kind = "sum" if reduce == "mean" else reduce
    ones = b.expand(b.const(1, _C.float32), b.shape_of(index), index.shape)
    base = self
    zeros = b.expand(b.const(0, _C.float32), b.shape_of(self), self.shape)
    count = _elements(b, zeros, dim, index, ones, "add") if reduce == "mean" or not include_self else None
    if not include_self:
        info = finfo(self.dtype) if self.dtype.is_floating_point else iinfo(self.dtype)
        infinite = self.dtype.is_floating_point
        neutral = {
            "sum": 0, "prod": 1, "amax": -float("inf") if infinite else info.min, "amin": float("inf") if infinite else info.max,
        }[kind]  # fmt: skip
        base = b.where(b.op("Greater", count, b.const(0.0, _C.float32)), neutral, self, self.dtype)
        base.shape = self.shape
    total = _elements(b, base, dim, index, src, _REDUCTIONS[kind])
    if reduce == "mean":
        count = count + 1.0 if include_self else b.op("Max", count, b.const(1.0, _C.float32))
        if not self.dtype.is_floating_point:
            return b.cast(b.op("Floor", b.op("Div", b.cast(total, _C.float64), b.cast(count, _C.float64))), self.dtype)
        return b.op("Div", total, b.cast(count, self.dtype))
    return total


@translates("aten.index_put.default aten._unsafe_index_put.default")
def _index_put(
    b: Builder, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Value:
    if (
        len(indices) == 1
        and indices[0] is not None
        and indices[0].dtype is _C.bool
        and values.shape in ((), (1,))
        and not accumulate
    ):
        mask = indices[0]
        wide = b.unsqueeze(mask, list(range(mask.rank, self.rank))) if mask.rank < self.rank else mask
        return b.op("Where", wide, b.cast(values, self.dtype), self)
    found = expanded_masks(b, self, indices)
    used, rest = plan(found, self.rank)
    vectors = common(b, [v for v in found if v is not None])
    n = vectors[0].rank
    moved = b.transpose(self, [*used, *rest])
    stacked = (
        b.op("Concat", *(b.unsqueeze(v, [-1]) for v in vectors), axis=-1)
        if len(vectors) > 1
        else b.unsqueeze(vectors[0], [-1])
    )
    sizes = (
        b.op("Concat", b.op("Shape", vectors[0]), b.op("Shape", moved, start=len(used)), axis=0)
        if rest
        else b.op("Shape", vectors[0])
    )
    lead = used[0] if used == list(range(used[0], used[0] + len(used))) else 0
    values = b.cast(values, self.dtype)
    if lead:  # values have the indexed dimensions where they were
        order = [*range(lead, lead + n), *range(lead), *range(lead + n, n + len(rest))]
        full = b.op("Gather", sizes, b.const([order.index(d) for d in range(n + len(rest))], _C.int64), axis=0)
        updates = b.transpose(b.expand(values, full, (None,) * (n + len(rest))), order)
    else:
        updates = b.expand(values, sizes)
    made = b.op("ScatterND", moved, stacked, updates, reduction="add" if accumulate else "none", shape=moved.shape)
    order = [*used, *rest]
    return b.transpose(made, [order.index(d) for d in range(self.rank)])


def _vector(b: Builder, start: Any, end: Any, step: int, size: Any) -> Value:
    """The indices of a slice within 0 and the size."""
    whole = b.arange(size)
    return b.slice(whole, 0, start, end, step)


def _scattered(b: Builder, self: Value, dim: int, line: Value, source: Value) -> Value:
    moved = b.moved(self, dim, 0) if dim % self.rank else self
    updates = b.moved(source, dim, 0) if dim % self.rank else source
    made = b.op("ScatterND", moved, b.unsqueeze(line, [-1]), b.cast(updates, self.dtype), shape=moved.shape)
    return b.moved(made, 0, dim) if dim % self.rank else made


@translates("aten.slice_scatter.default")
def _slice_scatter(
    b: Builder, self: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    start, end = 0 if start is None else start, 2**62 if end is None else end
    line = _vector(b, start, end, step, b.size(self, dim))
    return _scattered(b, self, dim, line, src)


@translates("aten.select_scatter.default")
def _select_scatter(b: Builder, self: Value, src: Value, dim: int, index: Any) -> Value:
    if type(index) is int and index < 0:
        index = b.arithmetic("Add", b.size(self, dim), index)
    return _scattered(b, self, dim, b.ints([index]), b.unsqueeze(src, [dim % self.rank]))


@translates("aten.diagonal_scatter.default")
def _diagonal_scatter(b: Builder, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    first, second = dim1 % self.rank, dim2 % self.rank
    rest = [d for d in range(self.rank) if d not in (first, second)]
    moved = b.transpose(self, [first, second, *rest])
    line = b.arange(b.size(src, -1))
    stacked = b.op(
        "Concat", b.unsqueeze(line + max(-offset, 0), [-1]), b.unsqueeze(line + max(offset, 0), [-1]), axis=-1
    )
    made = b.op("ScatterND", moved, stacked, b.moved(src, -1, 0), shape=moved.shape)
    order = [first, second, *rest]
    return b.transpose(made, [order.index(d) for d in range(self.rank)])


@translates("aten.masked_scatter.default")
def _masked_scatter(b: Builder, self: Value, mask: Value, source: Value) -> Value:
    ones = b.expand(b.const(True, _C.bool), b.shape_of(self), self.shape)
    full = b.op("And", mask, ones)
    places = b.op("Transpose", b.op("NonZero", full), perm=[1, 0], shape=(None, self.rank))
    count = b.op("Shape", places, start=0, end=1)
    updates = b.op("Slice", b.reshape(source, [-1]), b.const([0], _C.int64), count)
    return b.op("ScatterND", self, places, updates, shape=self.shape)


@translates("aten.index_copy.default")
def _index_copy(b: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    index = b.reshape(index, [1]) if index.shape == () else index
    return _scattered(b, self, dim, index, source)


@translates("aten.index_fill.int_Scalar aten.index_fill.int_Tensor")
def _index_fill(b: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    index = b.reshape(index, [1]) if index.shape == () else index
    moved = b.moved(self, dim, 0)
    sizes = b.op("Concat", b.op("Shape", index), b.op("Shape", moved, start=1), axis=0)
    updates = b.expand(b.value(value, self.dtype), sizes)
    made = b.op("ScatterND", moved, b.unsqueeze(index, [-1]), updates, shape=moved.shape)
    return b.moved(made, 0, dim)


@translates("aten.index_add.default")
def _index_add(b: Builder, self: Value, dim: int, index: Value, source: Value, alpha: Any = 1) -> Value:
    index = b.reshape(index, [1]) if index.shape == () else index
    updates = source if alpha == 1 else source * alpha
    moved = b.moved(self, dim, 0)
    made = b.op(
        "ScatterND", moved, b.unsqueeze(index, [-1]), b.moved(updates, dim, 0), reduction="add", shape=moved.shape
    )
    return b.moved(made, 0, dim)


@translates("aten.index_reduce.default")
def _index_reduce(b: Builder, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True) -> Value:
    """scatter_reduce with the index repeated over the other dimensions."""
    wide = b.reshape(index, [-1 if d == dim % self.rank else 1 for d in range(self.rank)])
    full = b.expand(wide, b.shape_of(source), source.shape)
    return combined(b, self, dim, full, source, reduce, include_self)


@translates("aten.bincount.default")
def _bincount(b: Builder, self: Value, weights: Value | None = None, minlength: int = 0) -> Value:
    """Adds ones, or the weights, at the places that the elements name."""
    places = b.cast(self, _C.int64)
    with_least = b.op("Concat", places, b.const([minlength - 1], _C.int64), axis=0, shape=(None,))
    count = b.op("ReduceMax", with_least, b.const([0], _C.int64), keepdims=1, shape=(1,)) + 1
    zeros = b.expand(b.const(0, b.dtype), count, (None,))
    added = b.cast(weights, b.dtype) if weights is not None else b.expand(b.const(1, b.dtype), b.shape_of(self), self.shape)
    return b.op("ScatterElements", zeros, places, added, axis=0, reduction="add", shape=(None,))
