"""Sorting and the largest elements."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import is_float
from .._registry import Untranslatable, translates


def _top(b: Builder, self: Value, k: Any, dim: int, largest: bool) -> list[Value]:
    """TopK of a type that runtimes support. Equal elements keep their order, as in a stable sort."""
    work = self.dtype
    if work in (_C.bool, _C.uint8, _C.int8, _C.int16):
        work = _C.int32
    values, places = b.op(
        "TopK",
        b.cast(self, work),
        b.ints([k]),
        axis=dim,
        largest=int(largest),
        sorted=1,
        outputs=2,
        dtype=[work, _C.int64],
    )
    return [b.cast(values, self.dtype), places]


@translates("aten.topk.default")
def _topk(b: Builder, self: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[Value]:  # noqa: A002
    del sorted  # sorted results are valid in both cases
    if self.shape == ():
        return [self, b.const(0, _C.int64)]
    return _top(b, self, k, dim, largest)


@translates("aten.sort.default")
def _sort(b: Builder, self: Value, dim: int = -1, descending: bool = False) -> list[Value]:
    return sorted_along(b, self, dim, descending)


@translates("aten.sort.stable")
def _sort_stable(
    b: Builder, self: Value, *, stable: Any = None, dim: int = -1, descending: bool = False
) -> list[Value]:
    del stable  # TopK keeps the order of equal elements
    return sorted_along(b, self, dim, descending)


def sorted_along(b: Builder, self: Value, dim: int, descending: bool) -> list[Value]:
    """All elements along a dimension in order, and their places."""
    if self.shape == ():
        return [self, b.const(0, _C.int64)]
    return _top(b, self, b.size(self, dim), dim, descending)


@translates("aten.argsort.default aten.argsort.stable")
def _argsort(b: Builder, self: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    del stable
    return sorted_along(b, self, dim, descending)[1]


@translates("aten.msort.default")
def _msort(b: Builder, self: Value) -> Value:
    return sorted_along(b, self, 0, False)[0]


@translates("aten.kthvalue.default")
def _kthvalue(b: Builder, self: Value, k: int, dim: int = -1, keepdim: bool = False) -> list[Value]:
    if self.shape == ():
        return [self, b.const(0, _C.int64)]
    values, places = _top(b, self, k, dim, False)
    last = [b.op("Gather", v, b.const([-1], _C.int64), axis=dim) for v in (values, places)]
    return last if keepdim else [b.op("Squeeze", v, b.const([dim], _C.int64)) for v in last]


@translates("aten.median.dim")
def _median_dim(b: Builder, self: Value, dim: int, keepdim: bool = False) -> list[Value]:
    size = b.size(self, dim)
    if type(size) is not int:
        raise Untranslatable("the median of a dynamic dimension")
    return _kthvalue(b, self, (size + 1) // 2, dim, keepdim)


@translates("aten.median.default")
def _median(b: Builder, self: Value) -> Value:
    if any(type(n) is not int for n in self.shape):
        raise Untranslatable("the median of dynamic sizes")
    if self.shape == ():
        return self
    flat = b.reshape(self, [-1])
    count = 1
    for n in self.shape:
        count *= n
    return _kthvalue(b, flat, (count + 1) // 2, 0)[0]


# Of ONNX's operator Unique in onnxruntime; the others are exact in one of these.
_UNIQUE_TYPES = {
    _C.bool: _C.int64, _C.uint8: _C.int64, _C.int8: _C.int8, _C.int16: _C.int64, _C.int32: _C.int64, _C.float16: _C.float32,
    _C.bfloat16: _C.float32,
}  # fmt: skip


def _distinct(b: Builder, flat: Value) -> tuple[Value, Value, Value]:
    """The distinct values of a vector in order, the places of all elements among them, and their counts."""
    work = _UNIQUE_TYPES.get(flat.dtype, flat.dtype)
    values, _, places, counts = b.op(
        "Unique", b.cast(flat, work), sorted=1, outputs=4, dtype=[work, _C.int64, _C.int64, _C.int64],
        shape=[(None,), (None,), (None,), (None,)],
    )  # fmt: skip
    return b.cast(values, flat.dtype), places, counts


def _distinct_floats(b: Builder, flat: Value, joins_nans: bool) -> tuple[Value, Value, Value]:
    """_distinct() of floating-point numbers, with NaNs last: each is a value of its own, or, joined, all have one place and no count.

    ONNX's operator Unique compares with "<", which finds a NaN equal to every number.
    """
    flat = b.cast(flat, _UNIQUE_TYPES.get(flat.dtype, flat.dtype))
    is_nan = b.op("IsNaN", flat)
    is_number = b.op("Not", is_nan)
    values, places, counts = _distinct(b, b.op("Compress", flat, is_number, axis=0, shape=(None,)))
    nans = b.op("Compress", flat, is_nan, axis=0, shape=(None,))
    nan_places = b.op("Add", b.op("Mul", b.arange(b.size(nans, 0)), 0 if joins_nans else 1), b.size(values, 0), shape=(None,))
    numbers_before, nans_before = (b.op("CumSum", b.cast(of, _C.int64), b.const(0, _C.int64)) for of in (is_number, is_nan))
    order = b.op("Where", is_nan, b.op("Add", nans_before, b.size(places, 0)), numbers_before, shape=flat.shape)
    places = b.op("Gather", b.op("Concat", places, nan_places, axis=0, shape=(None,)), order - 1, axis=0, shape=flat.shape)
    if not joins_nans:
        values = b.op("Concat", values, nans, axis=0, shape=(None,))
        counts = b.op("Concat", counts, b.expand(b.const(1, _C.int64), b.shape_of(nans), (None,)), axis=0, shape=(None,))
    return values, places, counts


@translates("teletensor.unique_values.default")
def _unique_values(b: Builder, input: Value) -> list[Value]:  # noqa: A002 - the engine's name
    """The distinct values in order, the places of all elements among them, and their counts."""
    flat = b.reshape(input, [-1])
    values, places, counts = _distinct_floats(b, flat, False) if is_float(input.dtype) else _distinct(b, flat)
    return [b.cast(values, input.dtype), b.reshape(places, b.shape_of(input), input.shape), counts]


def _ranks(b: Builder, input: Value) -> Value:  # noqa: A002 - the engine's name
    """Integers that order the rows of a matrix of floating-point numbers: a column more, which makes rows with a NaN distinct."""
    flat = b.reshape(input, [-1])
    _, places, _ = _distinct_floats(b, flat, True)
    ranks = b.reshape(places, b.shape_of(input), input.shape)
    nans = b.op("ReduceSum", b.cast(b.op("IsNaN", input), _C.int64), b.const([1], _C.int64), keepdims=1, shape=(None, 1))
    rows = b.unsqueeze(b.op("Add", b.arange(b.size(input, 0)), 1, shape=(None,)), [1])
    own = b.op("Where", b.op("Greater", nans, 0), rows, 0, dtype=_C.int64, shape=(None, 1))
    return b.op("Concat", ranks, own, axis=1, shape=(None, None))


@translates("teletensor.unique_rows.default")
def _unique_rows(b: Builder, input: Value, consecutive: bool) -> list[Value]:  # noqa: A002 - the engine's name
    """The distinct rows of a matrix in order, or the first ones of runs of equal rows."""
    columns = input.shape[1] if input.shape is not None else None
    if not consecutive:
        work = _UNIQUE_TYPES.get(input.dtype, input.dtype)
        compared = b.cast(input, work)
        if is_float(input.dtype):
            work, compared = _C.int64, _ranks(b, compared)
        _, first, places, counts = b.op(
            "Unique", compared, axis=0, sorted=1, outputs=4, dtype=[work, _C.int64, _C.int64, _C.int64],
            shape=[(None, None), (None,), (None,), (None,)],
        )  # fmt: skip
        return [b.op("Gather", input, first, axis=0, shape=(None, columns)), places, counts]
    count = b.size(input, 0)
    work = b.cast(input, _C.int64) if input.dtype is _C.bool else input
    is_same = b.op("Equal", b.slice(work, 0, 1, 2**62), b.slice(work, 0, 0, -1))
    differs = b.op("ReduceMax", b.cast(b.op("Not", is_same), _C.int32), b.const([1], _C.int64), keepdims=0, shape=(None,))
    begins = b.op("Concat", b.const([1], _C.int32), differs, axis=0, shape=(None,))
    begins = b.slice(begins, 0, 0, count)  # of no rows, nothing begins
    first = b.cast(begins, _C.bool)
    ends = b.op("Concat", b.op("Compress", b.arange(count), first, axis=0), b.ints([count]), axis=0, shape=(None,))
    counts = b.op("Sub", b.slice(ends, 0, 1, 2**62), b.slice(ends, 0, 0, -1), shape=(None,))
    sums = b.op("CumSum", b.cast(begins, _C.int64), b.const(0, _C.int64))
    return [b.op("Compress", input, first, axis=0, shape=(None, columns)), sums - 1, counts]


@translates("aten.searchsorted.Tensor aten.bucketize.Tensor")
def _searchsorted(b: Builder, *args: Any, **kwargs: Any) -> Value:
    """The number of boundaries below each element."""
    return _search(b, *args, **kwargs)


def _search(
    b: Builder,
    first: Value,
    second: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Value:
    del out_int32
    if sorter is not None:
        raise Untranslatable("searchsorted with a sorter")
    right = right or side == "right"
    is_bucketize = b.metadata.get("pkg.torch.onnx.op", "").startswith("aten.bucketize")
    boundaries, values = (second, first) if is_bucketize else (first, second)
    if boundaries.rank > 1:
        boundaries = b.unsqueeze(boundaries, [-2])
    values = b.unsqueeze(values, [-1])
    below = b.op("LessOrEqual" if right else "Less", boundaries, values)
    counts = b.op("ReduceSum", b.cast(below, _C.int64), b.const([-1], _C.int64), keepdims=0)
    return b.cast(counts, b.dtype)
