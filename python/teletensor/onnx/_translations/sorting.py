"""Sorting and the largest elements."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._builder import Builder, Value
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


@translates("aten.unique_consecutive.default aten._unique2.default aten.unique_dim.default")
def _unique(b: Builder, *_: Any, **__: Any) -> Value:
    del b
    raise Untranslatable("the result's size depends on values, which torch.export does not record")


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
