"""Quantization: affine numbers of 2 to 16 bits, per tensor, axis or block."""

from __future__ import annotations

import math
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


def _centred(x: Tensor, zero: Tensor | None, is_left: bool, dtype: Any = torch.float64) -> Tensor:
    """Integers without their zero point, in a type whose products of these are exact."""
    values = x.to(dtype)
    if zero is None:
        return values
    zero = zero.to(dtype)
    if zero.dim() == 1 and zero.shape[0] > 1:
        zero = zero.unsqueeze(-1) if is_left else zero
    elif zero.numel() == 1:
        zero = zero.reshape([])
    return values - zero


_BYTES = (torch.int8, torch.uint8)
_EXACT = 258  # products of 9-bit integers whose sum is exact in float32: 258 * 255 * 255 < 2**24


def _signed(x: Tensor, zero: Tensor | None, is_left: bool) -> tuple[Tensor, Tensor | None]:
    """8-bit integers as int8, and what has to be added to them; None for nothing."""
    shift = 0 if x.dtype == torch.int8 else 128
    signed = x if x.dtype == torch.int8 else torch.bitwise_xor(x, 128).view(torch.int8)
    if zero is None:
        return signed, None if shift == 0 else torch.full((), shift, dtype=torch.int32, device=x.device)
    zero = zero.to(torch.int32)
    zero = zero.reshape([]) if zero.numel() == 1 else zero.unsqueeze(-1) if is_left and zero.dim() == 1 else zero
    return signed, shift - zero


def _product(a: Tensor, b: Tensor, zero_a: Tensor | None, zero_b: Tensor | None) -> Tensor:
    """The product of integers without their zero points, exactly, in int32 or float64."""
    depth = a.shape[-1]
    if a.dtype not in _BYTES or b.dtype not in _BYTES or not _values.fixed(depth) or depth == 0:
        return torch.matmul(_centred(a, zero_a, True), _centred(b, zero_b, False))
    if a.dim() < 2 or b.dim() != 2 or (a.dim() > 2 and zero_a is not None and zero_a.numel() > 1):
        left, right = (_centred(x, z, side, torch.float32) for x, z, side in ((a, zero_a, True), (b, zero_b, False)))
        return _in_parts(left, right, depth)
    (left, add_left), (right, add_right) = _signed(a, zero_a, True), _signed(b, zero_b, False)
    sums = torch._int_mm(left.reshape(-1, depth), right)
    sums = sums.reshape(*left.shape[:-1], right.shape[-1]) if a.dim() > 2 else sums
    if add_left is not None:
        sums = sums + add_left * right.sum(0, dtype=torch.int32)
    if add_right is not None:
        sums = sums + add_right * left.sum(-1, keepdim=True, dtype=torch.int32)
        if add_left is not None:
            sums = sums + depth * add_left * add_right
    return sums


def _in_parts(left: Tensor, right: Tensor, depth: int) -> Tensor:
    """A product of centred 8-bit integers, as a sum of products that float32 computes exactly."""
    axis = -2 if right.dim() > 1 else 0
    total = None
    for start in range(0, depth, _EXACT):
        count = min(_EXACT, depth - start)
        part = torch.matmul(left.narrow(-1, start, count), right.narrow(axis, start, count)).to(torch.int32)
        total = part if total is None else total + part
    assert total is not None
    return total


def _convolution(call: Call, x: Tensor, weight: Tensor, zero_x: Tensor | None, zero_w: Tensor | None) -> Tensor:
    """The convolution of integers without their zero points, exactly, in int32 or float64."""
    window = math.prod(weight.shape[2:]) if all(map(_values.fixed, weight.shape)) else 0
    per_group = weight.shape[1]
    small = x.dtype in _BYTES and weight.dtype in _BYTES and 0 < window <= _EXACT
    channels = _EXACT // window if small else 0
    if not small or (call.get("group", 1) > 1 and per_group > channels):
        dtype = torch.float64
        channels = per_group
    else:
        dtype = torch.float32
    w = weight.to(dtype)
    if zero_w is not None:
        zero_w = zero_w.to(dtype)
        w = w - (zero_w.reshape([]) if zero_w.numel() == 1 else zero_w.reshape([-1] + [1] * (w.dim() - 1)))
    centred = _centred(x, zero_x, True, dtype)
    if dtype == torch.float64 or per_group <= channels:
        found = convolve(call, centred, w, None)
        return found if dtype == torch.float64 else found.to(torch.int32)
    total = None
    for start in range(0, per_group, channels):
        count = min(channels, per_group - start)
        part = convolve(call, centred.narrow(1, start, count), w.narrow(1, start, count), None).to(torch.int32)
        total = part if total is None else total + part
    assert total is not None
    return total


def _matmul_integer(
    _call: Call, a: Tensor, b: Tensor, zero_a: Tensor | None = None, zero_b: Tensor | None = None
) -> Tensor:
    return _product(a, b, zero_a, zero_b).to(torch.int32)


@sees_types
def _qlinear_matmul(call: Call, *inputs: Any) -> Any:
    number = _values.type_of(inputs[7])
    a, scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y = (call.tensor(_values.plain(v)) for v in inputs)
    product = _product(a, b, zero_a, zero_b).to(torch.float64)
    scale_a = (
        scale_a.unsqueeze(-1)
        if scale_a.dim() == 1 and scale_a.shape[0] > 1
        else scale_a.reshape([])
        if scale_a.numel() == 1
        else scale_a
    )
    scale_b, scale_y = (s.reshape([]) if s.numel() == 1 else s for s in (scale_b, scale_y))
    values = product * (scale_a.to(torch.float64) * scale_b.to(torch.float64) / scale_y.to(torch.float64))
    return _quantize_to(values, zero_y.reshape([]) if zero_y.numel() == 1 else zero_y, number)


def _conv_integer(
    call: Call, x: Tensor, weight: Tensor, zero_x: Tensor | None = None, zero_w: Tensor | None = None
) -> Tensor:
    return _convolution(call, x, weight, zero_x, zero_w).to(torch.int32)


def _qlinear_conv(call: Call, x: Tensor, scale_x: Tensor, zero_x: Tensor, weight: Tensor, scale_w: Tensor, zero_w: Tensor,
                  scale_y: Tensor, zero_y: Tensor, bias: Tensor | None = None) -> Any:  # fmt: skip
    sums = _convolution(call, x, weight, zero_x, zero_w)
    if bias is not None:
        sums = sums + bias.to(sums.dtype).reshape([1, -1] + [1] * (x.dim() - 2))
    scale = scale_x.reshape([]) * scale_w / scale_y.reshape([])  # in float32, as numbers between two are rounded elsewhere
    scale = scale.reshape([]) if scale.numel() == 1 else scale.reshape([1, -1] + [1] * (x.dim() - 2))
    return _quantize_to(sums.to(scale.dtype) * scale, zero_y.reshape([]), _values.type_of(zero_y))


TABLE: dict[str, tuple] = {
    "QuantizeLinear": ((10, _quantize),), "DequantizeLinear": ((10, _dequantize),), "DynamicQuantizeLinear": ((11, _dynamic),),
    "MatMulInteger": ((10, _matmul_integer),), "QLinearMatMul": ((10, _qlinear_matmul),), "ConvInteger": ((10, _conv_integer),),
    "QLinearConv": ((10, _qlinear_conv),),
}  # fmt: skip
