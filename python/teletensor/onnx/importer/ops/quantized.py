"""Quantization: affine numbers of 2 to 16 bits, per tensor, axis or block."""

from __future__ import annotations

from typing import Any

import teletensor as torch

from .. import _types, _values
from .._call import Call, sees_types
from .._values import Narrow
from .casts import convert
from .convolution import convolve

Tensor = torch.Tensor
_RANGES = {
    _types.UINT8: (0, 255), _types.INT8: (-128, 127), _types.UINT16: (0, 65535), _types.INT16: (-32768, 32767),
    **_types.SMALL_INTEGERS,
}  # fmt: skip


def _spread(t: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale or zero point, in sizes that broadcast with x."""
    if t.dim() == 0 or (t.dim() == 1 and t.shape[0] == 1 and not block):
        return t.reshape([])
    axis = axis % x.dim()
    if block:
        return t.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    if t.dim() == 1:
        return t.reshape([-1 if d == axis else 1 for d in range(x.dim())])
    return t


def _quantize_to(values: Tensor, zero: Tensor | None, number: int, saturate: bool = True) -> Any:
    """Scaled values as the element type, with the zero point added."""
    if number in _types.SMALL_FLOATS:
        found = values if zero is None else values + zero.to(values.dtype)
        return convert(found, number, saturate)
    if number not in _RANGES:
        raise ValueError(f"[QuantizeLinear] expected an element type of integers or small floats, got {number}")
    low, high = _RANGES[number]
    whole = torch.round(values.to(torch.float32) if values.element_size() < 4 else values)
    if zero is not None:
        whole = whole + zero.to(whole.dtype)
    found = torch.clamp(whole, low, high).to(torch.int32).to(_types.dtype_of(number))
    return Narrow(found, number) if number in _types.NARROW else found


@sees_types
def _quantize(call: Call, x: Tensor, scale: Any, zero: Any = None) -> Any:
    number = call.get("output_dtype", 0) or (_types.UINT8 if zero is None else _values.type_of(zero))
    axis, block = call.get("axis", 1), call.get("block_size", 0)
    scale, zero = call.tensor(_values.plain(scale)), None if zero is None else call.tensor(_values.plain(zero))
    precision = call.get("precision", 0)
    if precision:
        work = _types.dtype_of(precision)
    elif not x.dtype.is_floating_point:
        work = torch.float32
    else:
        work = torch.promote_types(x.dtype, scale.dtype) if scale.dtype.is_floating_point else x.dtype
    spread = _spread(scale, x, axis, block).to(work)
    values = x.to(work) / spread
    return _quantize_to(
        values,
        None if zero is None else _spread(zero.to(torch.float32), x, axis, block),
        number,
        bool(call.get("saturate", 1)),
    )


@sees_types
def _dequantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Tensor:
    x, scale = call.tensor(_values.plain(x)), call.tensor(_values.plain(scale))
    axis, block = call.get("axis", 1), call.get("block_size", 0)
    out = call.get("output_dtype", 0)
    result = _types.dtype_of(out) if out else scale.dtype
    work = torch.float32 if result.itemsize < 4 else result
    values = x.to(work)
    if zero is not None:
        values = values - _spread(call.tensor(_values.plain(zero)).to(work), x, axis, block)
    return (values * _spread(scale.to(work), x, axis, block)).to(result)


def _dynamic(_call: Call, x: Tensor) -> tuple:
    low = torch.clamp(x.min(), max=0.0)
    high = torch.clamp(x.max(), min=0.0)
    scale = (high - low) / 255.0
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.clamp(torch.round(-low / scale), 0, 255)
    found = torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8)
    return found, scale, zero.to(torch.uint8)


def _centred(x: Tensor, zero: Tensor | None, is_left: bool) -> Tensor:
    """Integers without their zero point, in float64, whose products of these are exact."""
    values = x.to(torch.float64)
    if zero is None:
        return values
    zero = zero.to(torch.float64)
    if zero.dim() == 1 and zero.shape[0] > 1:
        zero = zero.unsqueeze(-1) if is_left else zero
    elif zero.numel() == 1:
        zero = zero.reshape([])
    return values - zero


def _matmul_integer(
    _call: Call, a: Tensor, b: Tensor, zero_a: Tensor | None = None, zero_b: Tensor | None = None
) -> Tensor:
    return torch.matmul(_centred(a, zero_a, True), _centred(b, zero_b, False)).to(torch.int32)


@sees_types
def _qlinear_matmul(call: Call, *inputs: Any) -> Any:
    number = _values.type_of(inputs[7])
    a, scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y = (call.tensor(_values.plain(v)) for v in inputs)
    left, right = _centred(a, zero_a, True), _centred(b, zero_b, False)
    scale_a = (
        scale_a.unsqueeze(-1)
        if scale_a.dim() == 1 and scale_a.shape[0] > 1
        else scale_a.reshape([])
        if scale_a.numel() == 1
        else scale_a
    )
    scale_b, scale_y = (s.reshape([]) if s.numel() == 1 else s for s in (scale_b, scale_y))
    product = torch.matmul(left, right)
    values = product * (scale_a.to(torch.float64) * scale_b.to(torch.float64) / scale_y.to(torch.float64))
    return _quantize_to(values, zero_y.reshape([]) if zero_y.numel() == 1 else zero_y, number)


def _conv_integer(
    call: Call, x: Tensor, weight: Tensor, zero_x: Tensor | None = None, zero_w: Tensor | None = None
) -> Tensor:
    w = weight.to(torch.float64)
    if zero_w is not None:
        zero_w = zero_w.to(torch.float64)
        w = w - (zero_w.reshape([]) if zero_w.numel() == 1 else zero_w.reshape([-1] + [1] * (w.dim() - 1)))
    return convolve(call, _centred(x, zero_x, True), w, None).to(torch.int32)


def _qlinear_conv(call: Call, x: Tensor, scale_x: Tensor, zero_x: Tensor, weight: Tensor, scale_w: Tensor, zero_w: Tensor,
                  scale_y: Tensor, zero_y: Tensor, bias: Tensor | None = None) -> Any:  # fmt: skip
    def channel(t: Tensor) -> Tensor:
        return t.reshape([]) if t.numel() == 1 else t.reshape([-1] + [1] * (weight.dim() - 1))

    w = weight.to(torch.float64) - channel(zero_w.to(torch.float64))
    sums = convolve(call, _centred(x, zero_x, True), w, None if bias is None else bias.to(torch.float64))
    scale = scale_x.reshape([]) * scale_w / scale_y.reshape([])  # in float32, as numbers between two are rounded elsewhere
    scale = scale.reshape([]) if scale.numel() == 1 else scale.reshape([1, -1] + [1] * (x.dim() - 2))
    return _quantize_to(sums.to(scale.dtype) * scale, zero_y.reshape([]), _values.type_of(zero_y))


TABLE: dict[str, tuple] = {
    "QuantizeLinear": ((10, _quantize),), "DequantizeLinear": ((10, _dequantize),), "DynamicQuantizeLinear": ((11, _dynamic),),
    "MatMulInteger": ((10, _matmul_integer),), "QLinearMatMul": ((10, _qlinear_matmul),), "ConvInteger": ((10, _conv_integer),),
    "QLinearConv": ((10, _qlinear_conv),),
}  # fmt: skip
