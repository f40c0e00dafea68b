"""New tensors: filled ones, ranges, identity matrices, one-hot vectors, windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import is_float
from .._registry import TRANSLATIONS, Untranslatable, translates


def _filled(value: Any) -> Any:
    def translate(b: Builder, size: Sequence[Any], **_: Any) -> Value:
        return b.filled(size, value, b.dtype)

    return translate


for _name, _value in (("zeros.default", 0), ("ones.default", 1), ("empty.memory_format", 0)):
    TRANSLATIONS[f"aten.{_name}"] = _filled(_value)


@translates("aten.empty_strided.default aten.new_empty_strided.default")
def _empty_strided(b: Builder, *args: Any, **_: Any) -> Value:
    """Values of empty tensors are unspecified; these are 0."""
    return b.filled(args[-2], 0, b.dtype)


@translates("aten.full.default")
def _full(b: Builder, size: Sequence[Any], fill_value: Any, **_: Any) -> Value:
    if isinstance(fill_value, Value):
        return b.expand(b.cast(fill_value, b.dtype), size, b.shape)
    return b.filled(size, fill_value, b.dtype)


def _like(value: Any) -> Any:
    def translate(b: Builder, self: Value, **_: Any) -> Value:
        if all(type(n) is int for n in self.shape):
            return b.filled(list(self.shape), value, b.dtype)
        return b.expand(b.const(value, b.dtype), b.shape_of(self), b.shape)

    return translate


for _name, _value in (("zeros_like", 0), ("ones_like", 1), ("empty_like", 0)):
    TRANSLATIONS[f"aten.{_name}.default"] = _like(_value)


@translates("aten.full_like.default aten.fill.Scalar aten.fill.Tensor")
def _full_like(b: Builder, self: Value, fill_value: Any = None, value: Any = None, **_: Any) -> Value:
    found = fill_value if fill_value is not None else value
    if isinstance(found, Value):
        return b.expand(b.cast(found, b.dtype), b.shape_of(self), b.shape)
    return _like(found)(b, self)


def _new(value: Any) -> Any:
    def translate(b: Builder, self: Value, size: Sequence[Any], **_: Any) -> Value:
        del self
        return b.filled(size, value, b.dtype)

    return translate


for _name, _value in (("new_zeros", 0), ("new_ones", 1), ("new_empty", 0)):
    TRANSLATIONS[f"aten.{_name}.default"] = _new(_value)


@translates("aten.new_full.default")
def _new_full(b: Builder, self: Value, size: Sequence[Any], fill_value: Any, **_: Any) -> Value:
    del self
    return _full(b, size, fill_value)


@translates("aten.copy.default")
def _copy(b: Builder, self: Value, src: Value, non_blocking: bool = False) -> Value:
    del non_blocking
    return b.expand(b.cast(src, self.dtype), b.shape_of(self), self.shape)


@translates("aten.arange.default aten.arange.start aten.arange.start_step")
def _arange(b: Builder, *args: Any, **_: Any) -> Value:
    start, end, step = (0, args[0], 1) if len(args) == 1 else (args[0], args[1], args[2] if len(args) > 2 else 1)
    return range_of(b, start, end, step)


def range_of(b: Builder, start: Any, end: Any, step: Any) -> Value:
    """Numbers from `start`, below `end`."""
    if any(isinstance(v, float) for v in (start, end, step)):
        if any(isinstance(v, Value) for v in (start, end, step)):
            raise Untranslatable("a range with both dynamic sizes and fractions")
        count = max(math.ceil((end - start) / step), 0)
        places = b.arange(count, _C.float64)
        return b.cast(places * float(step) + float(start), b.dtype)
    made = b.op("Range", *(b.value(v, _C.int64) for v in (start, end, step)), shape=b.shape)
    return b.cast(made, b.dtype)


@translates("aten.linspace.default")
def _linspace(b: Builder, start: Any, end: Any, steps: Any, **_: Any) -> Value:
    if isinstance(start, Value) or isinstance(end, Value):
        raise Untranslatable("linspace of tensors")
    if type(steps) is int and steps == 1:
        return b.const([start], b.dtype)
    last = b.arithmetic("Sub", steps, 1)
    places = b.arange(steps, _C.float64)
    step = b.const(float(end - start), _C.float64) / (
        b.cast(last, _C.float64) if isinstance(last, Value) else b.const(float(last), _C.float64)
    )
    rising = b.op("Mul", places, step) + float(start)
    back = b.cast(b.op("Sub", b.value(last, _C.int64), b.arange(steps)), _C.float64)
    falling = b.const(float(end), _C.float64) - b.op("Mul", back, step)
    half = b.op(
        "Less",
        b.arange(steps),
        b.op("Div", b.op("Add", b.value(steps, _C.int64), b.const(1, _C.int64)), b.const(2, _C.int64)),
    )
    made = b.where(half, rising, falling)
    return b.cast(made, b.dtype) if is_float(b.dtype) else b.cast(b.cast(made, _C.float32), b.dtype)


@translates("aten.eye.default aten.eye.m")
def _eye(b: Builder, n: Any, m: Any = None, **_: Any) -> Value:
    rows, columns = b.arange(n), b.arange(n if m is None else m)
    return b.cast(b.op("Equal", b.unsqueeze(rows, [1]), b.unsqueeze(columns, [0])), b.dtype)


@translates("aten.one_hot.default")
def _one_hot(b: Builder, self: Value, num_classes: Any = -1) -> Value:
    if type(num_classes) is int and num_classes < 0:
        raise Untranslatable("one_hot without the number of classes: the result's size depends on values")
    return b.cast(b.op("Equal", b.unsqueeze(self, [-1]), b.arange(num_classes)), b.dtype)


@translates("aten.tril_indices.default aten.triu_indices.default")
def _indices(b: Builder, *_: Any, **__: Any) -> Value:
    del b
    raise Untranslatable("indices of a triangle; use torch.tril of ones and nonzero outside of the model")


def _window(coefficients: tuple[float, ...]) -> Any:
    def translate(b: Builder, window_length: int, periodic: bool = True, **_: Any) -> Value:
        if type(window_length) is not int:
            raise Untranslatable("a window of a dynamic size")
        n = window_length + 1 if periodic else window_length
        values = [
            sum(c * (-1) ** k * math.cos(2 * math.pi * k * i / (n - 1)) for k, c in enumerate(coefficients))
            if n > 1
            else 1.0
            for i in range(window_length)
        ]
        return b.const(values, b.dtype)

    return translate


TRANSLATIONS["aten.hann_window.default"] = TRANSLATIONS["aten.hann_window.periodic"] = _window((0.5, 0.5))
TRANSLATIONS["aten.hamming_window.default"] = TRANSLATIONS["aten.hamming_window.periodic"] = _window((0.54, 0.46))
TRANSLATIONS["aten.blackman_window.default"] = TRANSLATIONS["aten.blackman_window.periodic"] = _window(
    (0.42, 0.5, 0.08)
)
