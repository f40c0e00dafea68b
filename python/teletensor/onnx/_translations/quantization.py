"""Quantized values: QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import LIMITS
from .._registry import translates


def _scalar(b: Builder, v: Any, dtype: Any) -> Value:
    if isinstance(v, Value):
        v = b.cast(v, dtype)
        return b.reshape(v, []) if v.shape == (1,) else v
    return b.const(v, dtype)


def _quantized(
    b: Builder, x: Value, scale: Value, zero: Any, axis: int | None, low: int, high: int, dtype: Any
) -> Value:
    """Saturated to the dtype's range by the operator, and to a smaller one by a limit on the result."""
    if dtype not in (_C.uint8, _C.int8) and not (dtype in (_C.int16, _C.uint16) and b.opset >= 21):
        return _written_out(b, x, scale, zero, axis, low, high, dtype)
    made = b.op("QuantizeLinear", x, scale, b.value(zero, dtype), axis=axis, dtype=dtype)
    limits = LIMITS.get(dtype, (0, 65535))
    if (low, high) != limits:
        made = b.op("Clip", made, b.const(max(low, limits[0]), dtype), b.const(min(high, limits[1]), dtype))
    return made


def _along(b: Builder, v: Value, x: Value, axis: int | None) -> Value:
    return v if axis is None else b.reshape(v, [-1] + [1] * (x.rank - 1 - axis % x.rank))


def _written_out(
    b: Builder, x: Value, scale: Value, zero: Any, axis: int | None, low: int, high: int, dtype: Any
) -> Value:
    zero = _along(b, b.cast(b.value(zero, _C.int32), _C.float32), x, axis)
    made = b.op("Add", b.op("Round", b.op("Div", x, _along(b, scale, x, axis))), zero)
    made = b.op("Clip", made, b.const(float(low), _C.float32), b.const(float(high), _C.float32))
    return b.cast(made, dtype)


@translates("quantized_decomposed.quantize_per_tensor.default quantized_decomposed.quantize_per_tensor.tensor "
            "quantized_decomposed.quantize_per_tensor.tensor2")  # fmt: skip
def _quantize_per_tensor(
    b: Builder, input: Value, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any
) -> Value:  # noqa: A002
    zero = _scalar(b, zero_point, dtype) if dtype in (_C.uint8, _C.int8) else _scalar(b, zero_point, _C.int32)
    return _quantized(b, input, _scalar(b, scale, _C.float32), zero, None, quant_min, quant_max, dtype)


def _dequantized(b: Builder, x: Value, scale: Value, zero: Value | None, axis: int | None, out_dtype: Any) -> Value:
    known = (_C.uint8, _C.int8, _C.int32)
    if x.dtype not in known:
        wide = (
            b.op("Sub", b.cast(x, _C.float32), _along(b, b.cast(zero, _C.float32), x, axis))
            if zero is not None
            else b.cast(x, _C.float32)
        )
        made = b.op("Mul", wide, _along(b, scale, x, axis))
    elif x.dtype is _C.int32 and zero is not None:  # the operator allows no zero point of this type but 0
        wide = b.cast(b.op("Sub", x, _along(b, b.cast(zero, _C.int32), x, axis)), _C.float32)
        made = b.op("Mul", wide, _along(b, scale, x, axis))
    else:
        made = b.op(
            "DequantizeLinear", x, scale, None if zero is None else b.cast(zero, x.dtype), axis=axis, dtype=_C.float32
        )
    return b.cast(made, out_dtype or _C.float32)


@translates("quantized_decomposed.dequantize_per_tensor.default quantized_decomposed.dequantize_per_tensor.tensor "
            "quantized_decomposed.dequantize_per_tensor.tensor2")  # fmt: skip
def _dequantize_per_tensor(
    b: Builder, input: Value, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any, *, out_dtype: Any = None,  # noqa: A002
) -> Value:  # fmt: skip
    del quant_min, quant_max, dtype  # they describe the input
    zero = (
        None
        if not isinstance(zero_point, Value) and zero_point == 0 and input.dtype is _C.int32
        else _scalar(b, zero_point, input.dtype)
    )
    return _dequantized(b, input, _scalar(b, scale, _C.float32), zero, None, out_dtype)


@translates("quantized_decomposed.quantize_per_channel.default")
def _quantize_per_channel(
    b: Builder, input: Value, scales: Value, zero_points: Value | None, axis: int, quant_min: int, quant_max: int, dtype: Any,  # noqa: A002
) -> Value:  # fmt: skip
    zero: Any = (
        b.op("Mul", b.cast(scales, _C.float32), b.const(0.0, _C.float32)) if zero_points is None else zero_points
    )
    zero = b.cast(zero, dtype if dtype in (_C.uint8, _C.int8) else _C.int32)
    return _quantized(b, input, b.cast(scales, _C.float32), zero, axis, quant_min, quant_max, dtype)


@translates("quantized_decomposed.dequantize_per_channel.default")
def _dequantize_per_channel(
    b: Builder, input: Value, scales: Value, zero_points: Value | None, axis: int, quant_min: int, quant_max: int, dtype: Any, *,  # noqa: A002
    out_dtype: Any = None,
) -> Value:  # fmt: skip
    del quant_min, quant_max, dtype
    return _dequantized(b, input, b.cast(scales, _C.float32), zero_points, axis, out_dtype)


@translates("quantized_decomposed.choose_qparams.tensor")
def _choose_qparams(b: Builder, input: Value, quant_min: int, quant_max: int, eps: float, dtype: Any) -> list[Value]:  # noqa: A002
    """Scale and zero point of the range of a tensor, which includes 0."""
    del dtype
    zero = b.const(0.0, _C.float32)
    low = b.op("Min", b.op("ReduceMin", input, keepdims=0), zero)
    high = b.op("Max", b.op("ReduceMax", input, keepdims=0), zero)
    scale = b.op("Max", (high - low) / float(quant_max - quant_min), b.const(float(eps), _C.float32))
    place = b.const(float(quant_min), _C.float32) - b.op("Round", b.op("Div", low, scale))
    place = b.op("Clip", place, b.const(float(quant_min), _C.float32), b.const(float(quant_max), _C.float32))
    return [b.reshape(b.cast(scale, b.dtype[0]), [1]), b.reshape(b.cast(place, b.dtype[1]), [1])]


@translates("aten.fake_quantize_per_tensor_affine.default aten.fake_quantize_per_tensor_affine.tensor_qparams")
def _fake_per_tensor(b: Builder, self: Value, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Value:
    return _fake(b, self, _scalar(b, scale, _C.float32), zero_point, None, quant_min, quant_max)


@translates("aten.fake_quantize_per_channel_affine.default")
def _fake_per_channel(
    b: Builder, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int, quant_max: int
) -> Value:
    return _fake(b, self, scale, zero_point, axis, quant_min, quant_max)


@translates("teletensor.fake_quantize_affine.default")
def _fake_affine(b: Builder, input: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int) -> Value:  # noqa: A002
    """With a scale and a zero point that broadcast."""
    zero = b.cast(zero_point, _C.float32)
    made = b.op("Add", b.op("Round", b.op("Mul", input, b.op("Div", b.const(1.0, _C.float32), scale))), zero)
    made = b.op("Clip", made, b.const(float(quant_min), _C.float32), b.const(float(quant_max), _C.float32))
    return b.op("Mul", b.op("Sub", made, zero), scale)


def _fake(b: Builder, x: Value, scale: Value, zero: Any, axis: int | None, low: int, high: int) -> Value:
    if (low, high) in ((0, 255), (-128, 127)):
        dtype = _C.uint8 if low == 0 else _C.int8
        point = b.cast(zero, dtype) if isinstance(zero, Value) else b.const(zero, dtype)
        point = b.reshape(point, []) if axis is None and point.shape == (1,) else point
        made = b.op("QuantizeLinear", x, scale, point, axis=axis, dtype=dtype)
        return b.op("DequantizeLinear", made, scale, point, axis=axis, dtype=_C.float32)
    zero = _along(b, b.cast(b.value(zero), _C.float32), x, axis)
    scale = _along(b, scale, x, axis)
    made = b.op("Add", b.op("Round", b.op("Div", x, scale)), zero)
    made = b.op("Clip", made, b.const(float(low), _C.float32), b.const(float(high), _C.float32))
    return b.op("Mul", b.op("Sub", made, zero), scale)
