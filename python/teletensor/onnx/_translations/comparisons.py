"""Comparisons, tests of elements and selection by conditions."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import is_float
from .._registry import TRANSLATIONS, translates
from ._types import promoted, result_type


def _compared(op_type: str, negated: bool = False) -> Any:
    def translate(b: Builder, self: Any, other: Any) -> Value:
        dtype = result_type(self, other)
        if dtype in (_C.bool, _C.uint8, _C.int8, _C.int16) and not (op_type == "Equal" and dtype is _C.bool):
            dtype = _C.int32
        made = b.op(op_type, *promoted(b, self, other, dtype=dtype))
        return b.op("Not", made) if negated else made

    return translate


for _name, (_op, _negated) in {
    "eq": ("Equal", False), "ne": ("Equal", True), "lt": ("Less", False), "le": ("LessOrEqual", False), "gt": ("Greater", False),
    "ge": ("GreaterOrEqual", False), "not_equal": ("Equal", True), "less": ("Less", False), "less_equal": ("LessOrEqual", False),
    "greater": ("Greater", False), "greater_equal": ("GreaterOrEqual", False),
}.items():  # fmt: skip
    for _form in ("Tensor", "Scalar"):
        TRANSLATIONS[f"aten.{_name}.{_form}"] = _compared(_op, _negated)


def _never(b: Builder, x: Value) -> Value:
    return b.op("Not", b.op("Equal", x, x))


@translates("aten.isnan.default")
def _isnan(b: Builder, self: Value) -> Value:
    return b.op("IsNaN", self) if is_float(self.dtype) else _never(b, self)


@translates("aten.isinf.default")
def _isinf(b: Builder, self: Value) -> Value:
    if not is_float(self.dtype):
        return _never(b, self)
    return b.op("IsInf", b.cast(self, _C.float32) if self.dtype in (_C.float16, _C.bfloat16) else self)


@translates("aten.isfinite.default")
def _isfinite(b: Builder, self: Value) -> Value:
    return b.op("Not", b.op("Or", _isnan(b, self), _isinf(b, self)))


@translates("aten.isposinf.default")
def _isposinf(b: Builder, self: Value) -> Value:
    return b.op("Equal", self, b.const(float("inf"), self.dtype)) if is_float(self.dtype) else _never(b, self)


@translates("aten.isneginf.default")
def _isneginf(b: Builder, self: Value) -> Value:
    return b.op("Equal", self, b.const(-float("inf"), self.dtype)) if is_float(self.dtype) else _never(b, self)


@translates("aten.signbit.default")
def _signbit(b: Builder, self: Value) -> Value:
    if not is_float(self.dtype):
        return b.op("Less", b.cast(self, _C.int64), b.const(0, _C.int64))
    zero = b.const(0.0, self.dtype)
    return b.op("Less", b.where(b.op("Equal", self, zero), b.op("Reciprocal", self), self), zero)


@translates("aten.isclose.default")
def _isclose(
    b: Builder, self: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    x, y = (b.cast(v, _C.float64) if not is_float(v.dtype) else v for v in promoted(b, self, other))
    difference = b.op("Abs", b.op("Sub", x, y))
    limit = b.op("Abs", y) * rtol + atol
    finite = b.op("Not", b.op("IsInf", difference))
    near = b.op("Or", b.op("Equal", x, y), b.op("And", finite, b.op("LessOrEqual", difference, limit)))
    return b.op("Or", near, b.op("And", b.op("IsNaN", x), b.op("IsNaN", y))) if equal_nan else near


@translates("aten.where.self aten.where.ScalarSelf aten.where.ScalarOther aten.where.Scalar")
def _where(b: Builder, condition: Value, self: Any, other: Any) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("Where", b.cast(condition, _C.bool), x, y)


@translates("aten.masked_fill.Scalar aten.masked_fill.Tensor")
def _masked_fill(b: Builder, self: Value, mask: Value, value: Any) -> Value:
    return b.op("Where", mask, b.value(value, self.dtype), self)


@translates("aten.heaviside.default")
def _heaviside(b: Builder, self: Value, values: Value) -> Value:
    zero = b.const(0, self.dtype)
    positive = b.cast(b.op("Greater", self, zero), self.dtype)
    made = b.where(b.op("Equal", self, zero), values, positive)
    return b.where(b.op("IsNaN", self), self, made) if is_float(self.dtype) else made


@translates("aten.isin.Tensor_Tensor aten.isin.Tensor_Scalar")
def _isin(b: Builder, elements: Value, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Value:
    del assume_unique  # a promise that allows a faster search
    x, y = promoted(b, elements, test_elements)
    y = b.reshape(y, [1] * x.rank + [-1])
    equal = b.cast(b.op("Equal", b.unsqueeze(x, [-1]), y), _C.int32)
    found = b.op("Greater", b.reduce("ReduceMax", equal, [x.rank], False), b.const(0, _C.int32))
    return b.op("Not", found) if invert else found
