"""Sums, means, extremes, norms, variances, cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import LIMITS, is_float
from .._registry import TRANSLATIONS, Untranslatable, translates
from ._types import as_integer


def _dims(dim: Any) -> list[int]:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


@translates("aten.sum.default aten.sum.dim_IntList")
def _sum(b: Builder, self: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    del dtype  # the result's
    return b.reduce("ReduceSum", b.cast(self, b.dtype), _dims(dim), keepdim)


@translates("aten.nansum.default")
def _nansum(b: Builder, self: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    x = b.where(b.op("IsNaN", self), 0.0, self, self.dtype) if is_float(self.dtype) else self
    return _sum(b, x, dim, keepdim, dtype)


@translates("aten.mean.default aten.mean.dim")
def _mean(b: Builder, self: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    del dtype
    return b.reduce("ReduceMean", b.cast(self, b.dtype), _dims(dim), keepdim)


@translates("aten.nanmean.default")
def _nanmean(b: Builder, self: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    counted = b.cast(b.op("Not", b.op("IsNaN", self)), b.dtype)
    return b.op("Div", _nansum(b, self, dim, keepdim, dtype), b.reduce("ReduceSum", counted, _dims(dim), keepdim))


@translates("aten.prod.default aten.prod.dim_int")
def product(b: Builder, self: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    del dtype
    return b.reduce("ReduceProd", b.cast(self, b.dtype), _dims(dim), keepdim)


def _extreme(b: Builder, op_type: str, self: Value, dims: list[int], keepdim: bool) -> Value:
    if self.dtype in (_C.bool, _C.int16):
        return b.cast(b.reduce(op_type, b.cast(self, _C.int32), dims, keepdim), self.dtype)
    return b.reduce(op_type, self, dims, keepdim)


def _extremes(op_type: str) -> Any:
    def translate(b: Builder, self: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return _extreme(b, op_type, self, _dims(dim), keepdim)

    return translate


for _name in ("amax.default", "max.default"):
    TRANSLATIONS[f"aten.{_name}"] = _extremes("ReduceMax")
for _name in ("amin.default", "min.default"):
    TRANSLATIONS[f"aten.{_name}"] = _extremes("ReduceMin")


@translates("aten.aminmax.default")
def _aminmax(b: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> list[Value]:
    return [_extreme(b, name, self, _dims(dim), keepdim) for name in ("ReduceMin", "ReduceMax")]


def _places(b: Builder, op_type: str, self: Value, dim: int | None, keepdim: bool) -> Value:
    x = as_integer(b, self)
    if x.dtype is _C.int64:
        x = (
            b.op("Neg", x) if op_type == "ArgMin" else x
        )  # ArgMin and ArgMax of int64 are missing in runtimes: TopK has it
        if x.shape == ():
            return b.const(0, _C.int64)
        if dim is None:
            x, dim = b.reshape(x, [-1]), 0
        return _top(b, x, dim, keepdim, True)[1]
    if self.shape == ():
        return b.const(0, _C.int64)
    if dim is None:
        found = b.op(op_type, b.reshape(x, [-1]), axis=0, keepdims=0)
        return b.reshape(found, [1] * self.rank) if keepdim else found
    return b.op(op_type, x, axis=dim, keepdims=int(keepdim), select_last_index=0)


def _top(b: Builder, x: Value, dim: int, keepdim: bool, largest: bool) -> tuple[Value, Value]:
    values, places = b.op(
        "TopK", x, b.const([1], _C.int64), axis=dim, largest=int(largest), outputs=2, dtype=[x.dtype, _C.int64]
    )
    squeezed = (
        (values, places) if keepdim else tuple(b.op("Squeeze", v, b.const([dim], _C.int64)) for v in (values, places))
    )
    return squeezed[0], squeezed[1]


def _arg(op_type: str) -> Any:
    def translate(b: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        found = _places(b, op_type, self, dim, keepdim)
        if dim is None and keepdim and self.dtype is _C.int64:
            return b.reshape(found, [1] * self.rank)
        return found

    return translate


TRANSLATIONS["aten.argmax.default"], TRANSLATIONS["aten.argmin.default"] = _arg("ArgMax"), _arg("ArgMin")


def _with_places(largest: bool) -> Any:
    def translate(b: Builder, self: Value, dim: int, keepdim: bool = False) -> list[Value]:
        if self.shape == ():
            return [self, b.const(0, _C.int64)]
        op_type = "Max" if largest else "Min"
        places = _places(b, f"Arg{op_type}", self, dim, keepdim)
        return [_extreme(b, f"Reduce{op_type}", self, [dim], keepdim), places]

    return translate


TRANSLATIONS["aten.max.dim"], TRANSLATIONS["aten.min.dim"] = _with_places(True), _with_places(False)


def _truth(op_type: str) -> Any:
    def translate(b: Builder, self: Value, dim: Any = None, keepdim: bool = False) -> Value:
        x = b.cast(b.cast(self, _C.bool), _C.int32)
        return b.cast(b.reduce(op_type, x, _dims(dim), keepdim), b.dtype)

    return translate


for _form in ("default", "dim", "dims"):
    TRANSLATIONS[f"aten.any.{_form}"], TRANSLATIONS[f"aten.all.{_form}"] = _truth("ReduceMax"), _truth("ReduceMin")


@translates("aten.count_nonzero.default aten.count_nonzero.dim_IntList")
def _count_nonzero(b: Builder, self: Value, dim: Any = None) -> Value:
    return b.reduce("ReduceSum", b.cast(b.cast(self, _C.bool), _C.int64), _dims(dim), False)


@translates("aten.logsumexp.default aten.special_logsumexp.default")
def _logsumexp(b: Builder, self: Value, dim: Any, keepdim: bool = False) -> Value:
    """The largest element is subtracted, unless it is infinite."""
    x = b.computed(self)
    high = b.reduce("ReduceMax", x, _dims(dim), True)
    infinite = b.op("IsInf", high)
    high = b.where(infinite, 0.0, high, x.dtype)
    total = b.op("Log", b.reduce("ReduceSum", b.op("Exp", b.op("Sub", x, high)), _dims(dim), True))
    made = b.op("Add", total, high)
    if keepdim or self.shape == ():
        return made
    return b.squeeze(made, [d % self.rank for d in _dims(dim)] or list(range(self.rank)))


def _count(b: Builder, x: Value, dims: Sequence[int], dtype: Any) -> Any:
    """The number of elements in some dimensions: a number, or a value of a dtype."""
    total: Any = 1
    for d in dims or range(x.rank):
        total = b.arithmetic("Mul", total, b.size(x, d))
    return b.cast(total, dtype) if isinstance(total, Value) else total


def _variance(b: Builder, self: Value, dims: list[int], correction: Any, keepdim: bool) -> tuple[Value, Value]:
    mean = b.reduce("ReduceMean", self, dims, True)
    away = b.op("Sub", self, mean)
    total = b.reduce("ReduceSum", b.op("Mul", away, away), dims, keepdim)
    count = _count(b, self, dims, self.dtype)
    if isinstance(count, Value):
        divisor: Any = b.op("Max", count - float(correction), b.const(0, self.dtype))
    else:
        divisor = b.const(max(count - correction, 0), self.dtype)
    if not keepdim and self.shape != ():
        mean = b.squeeze(mean, [d % self.rank for d in dims] or list(range(self.rank)))
    return b.op("Div", total, divisor), mean


def _var_arguments(
    b: Builder, self: Value, dim: Any, unbiased: Any, correction: Any, keepdim: bool
) -> tuple[Value, Value]:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    amount = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    return _variance(b, self, _dims(dim), amount, keepdim)


def _var(is_std: bool, with_mean: bool) -> Any:
    def translate(
        b: Builder, self: Value, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    ) -> Any:  # fmt: skip
        variance, mean = _var_arguments(b, self, dim, unbiased, correction, keepdim)
        made = b.op("Sqrt", variance) if is_std else variance
        return [made, mean] if with_mean else made

    return translate


for _is_std, _base in ((False, "var"), (True, "std")):
    for _with_mean, _suffix in ((False, ""), (True, "_mean")):
        for _form in ("default", "dim", "correction"):
            TRANSLATIONS[f"aten.{_base}{_suffix}.{_form}"] = _var(_is_std, _with_mean)


# ---- Norms


def vector_norm_of(b: Builder, x: Value, order: Any, dims: list[int], keepdim: bool) -> Value:
    size = b.op("Abs", x)
    if order == 2:
        return b.reduce("ReduceL2", x, dims, keepdim) if x.shape != () else size
    if order == 1:
        return b.reduce("ReduceSum", size, dims, keepdim)
    if order == math.inf:
        return b.reduce("ReduceMax", size, dims, keepdim)
    if order == -math.inf:
        return b.reduce("ReduceMin", size, dims, keepdim)
    if order == 0:
        return b.reduce("ReduceSum", b.cast(b.cast(x, _C.bool), x.dtype), dims, keepdim)
    power = b.const(float(order), x.dtype)
    return b.op(
        "Pow", b.reduce("ReduceSum", b.op("Pow", size, power), dims, keepdim), b.const(1 / float(order), x.dtype)
    )


@translates("aten.linalg_vector_norm.default")
def _linalg_vector_norm(
    b: Builder, self: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:  # noqa: A002
    del dtype
    return vector_norm_of(b, b.cast(self, b.dtype), ord, _dims(dim), keepdim)


@translates("aten.norm.Scalar aten.norm.ScalarOpt_dim aten.norm.ScalarOpt_dim_dtype aten.norm.ScalarOpt_dtype")
def _norm(b: Builder, self: Value, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    del dtype
    return vector_norm_of(b, b.cast(self, b.dtype), 2 if p is None else p, _dims(dim), keepdim)


@translates("aten.dist.default")
def _dist(b: Builder, self: Value, other: Value, p: Any = 2) -> Value:
    return vector_norm_of(b, b.op("Sub", b.cast(self, b.dtype), b.cast(other, b.dtype)), p, [], False)


@translates("aten.frobenius_norm.dim aten.linalg_matrix_norm.default aten.linalg_matrix_norm.str_ord")
def _matrix_norm(
    b: Builder, self: Value, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None,  # noqa: A002
) -> Value:  # fmt: skip
    del dtype
    x = b.cast(self, b.dtype)
    if ord == "fro":
        return b.reduce("ReduceL2", x, _dims(dim), keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        rows, columns = (d % x.rank for d in dim)
        summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
        totals = b.reduce("ReduceSum", b.op("Abs", x), [summed], True)
        found = b.reduce("ReduceMax" if ord > 0 else "ReduceMin", totals, [kept], True)
        return found if keepdim else b.squeeze(found, [rows, columns])
    raise Untranslatable(f"the matrix norm of order {ord!r} needs singular values, which ONNX has no operator for")


# ---- Cumulative


@translates("aten.cumsum.default")
def _cumsum(b: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
    del dtype
    x = b.cast(self, b.dtype)
    return x if self.shape == () else b.op("CumSum", x, b.const(dim, _C.int64))


@translates("aten.cumprod.default")
def _cumprod(b: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
    """Products over a lower triangle of copies."""
    del dtype
    x = b.cast(self, b.dtype)
    if self.shape == ():
        return x
    moved = b.moved(x, dim, -1)
    size = b.size(moved, -1)
    row = b.arange(size)
    earlier = b.op("LessOrEqual", b.unsqueeze(row, [0]), b.unsqueeze(row, [1]))
    products = b.op(
        "ReduceProd",
        b.where(earlier, b.unsqueeze(moved, [-2]), 1, x.dtype),
        b.const([-1], _C.int64),
        keepdims=0,
        shape=moved.shape,
    )
    return b.moved(products, -1, dim)


@translates("aten.logcumsumexp.default")
def _logcumsumexp(b: Builder, self: Value, dim: int) -> Value:
    if self.shape == ():
        return self
    high = b.reduce("ReduceMax", self, [dim], True)
    total = b.op("CumSum", b.op("Exp", b.op("Sub", self, high)), b.const(dim, _C.int64))
    return b.op("Add", b.op("Log", total), high)


def _running(name: str) -> Any:
    def translate(b: Builder, self: Value, dim: int) -> list[Value]:
        """The extreme of a lower triangle of copies, and the last place that has it."""
        if self.shape == ():
            return [self, b.const(0, _C.int64)]
        if not is_float(self.dtype) and self.dtype not in LIMITS:
            raise Untranslatable(f"{name} of {self.dtype}")
        low, high = LIMITS.get(self.dtype, (-math.inf, math.inf))
        moved = b.moved(self, dim, -1)
        row = b.arange(b.size(moved, -1))
        earlier = b.op("LessOrEqual", b.unsqueeze(row, [0]), b.unsqueeze(row, [1]))
        triangle = b.where(earlier, b.unsqueeze(moved, [-2]), low if name == "cummax" else high, self.dtype)
        op_type = "Max" if name == "cummax" else "Min"
        values = b.op(f"Reduce{op_type}", triangle, b.const([-1], _C.int64), keepdims=0, shape=moved.shape)
        equal = b.op("And", b.op("Equal", triangle, b.op("Unsqueeze", values, b.const([-1], _C.int64))), earlier)
        places = b.op(
            "ReduceMax", b.where(equal, row, -1, _C.int64), b.const([-1], _C.int64), keepdims=0, shape=moved.shape
        )
        return [b.moved(values, -1, dim), b.moved(places, -1, dim)]

    return translate


TRANSLATIONS["aten.cummax.default"], TRANSLATIONS["aten.cummin.default"] = _running("cummax"), _running("cummin")
