"""Quantizers: how integers represent numbers, and the engine's operators that convert between both."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

from .. import _C
from .._C import Tensor
from .._quantized_names import (
    QuantizedDType,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_tensor_affine,
    qint32,
    qscheme,
)  # fmt: skip

_NAMES = {"quint8": "QUInt8", "qint8": "QInt8", "qint32": "QInt32", "quint4x2": "QUInt4x2", "quint2x4": "QUInt2x4"}


def single(number: float) -> float:
    """The number rounded to float32."""
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def reciprocal(scale: float) -> float:
    """1 / scale in float32, infinite for 0."""
    rounded = single(scale)
    return single(1 / rounded) if rounded else float("inf")


def aten_name(dtype: Any) -> str:
    """PyTorch's name of a quantized dtype in messages, such as "QUInt8"."""
    return _NAMES[repr(dtype).removeprefix("torch.")]


@dataclass(frozen=True)
class Quantizer:
    """The dtype, scale and zero point of a quantized tensor.

    Attributes:
        dtype: the quantized dtype.
        scale: a number, or a tensor: one number that was not read yet, or one per entry of ``axis`` as float64.
        zero_point: likewise, an integer or int64. The zero points of per_channel_affine_float_qparams are float32.
        axis: the dimension with a scale per entry; None if the tensor has one scale.
    """

    dtype: QuantizedDType
    scale: float | Tensor
    zero_point: int | Tensor
    axis: int | None = None

    @property
    def scheme(self) -> qscheme:
        """torch.per_tensor_affine, per_channel_affine or per_channel_affine_float_qparams."""
        if self.axis is None:
            return per_tensor_affine
        floating = isinstance(self.zero_point, Tensor) and self.zero_point.is_floating_point()
        return per_channel_affine_float_qparams if floating else per_channel_affine

    def numbers(self) -> tuple[float, int]:
        """The scale and zero point of a tensor with one scale. Waits for the engine if the engine computed them."""
        scale = self.scale.item() if isinstance(self.scale, Tensor) else self.scale
        point = self.zero_point.item() if isinstance(self.zero_point, Tensor) else self.zero_point
        return scale, int(point)

    def _along(self, parameter: Any, dims: int) -> Any:
        """A parameter in a shape that broadcasts to a tensor of this many dimensions."""
        if self.axis is None or not isinstance(parameter, Tensor):
            return parameter
        return parameter.reshape([-1 if d == self.axis else 1 for d in range(dims)])

    def quantize(self, input: Tensor) -> Tensor:
        """The integers that represent a float32 tensor, computed in float32."""
        scale, point = self._along(self.scale, input.dim()), self._along(self.zero_point, input.dim())
        inverse = 1 / scale.to(_C.float32) if isinstance(scale, Tensor) else reciprocal(scale)
        if self.scheme is per_channel_affine_float_qparams:
            low, high = self.dtype.limits
            return (input * inverse + point).round().clamp(low, high).to(self.dtype.stored)
        if self.dtype is qint32:
            return _quantize_int32(input * inverse, point)
        low, high = self.dtype.limits
        return _C.ops.quantize_affine(input, inverse, point, low, high, low < 0)

    def dequantize(self, ints: Tensor) -> Tensor:
        """The float32 numbers that integers represent."""
        scale, point = self._along(self.scale, ints.dim()), self._along(self.zero_point, ints.dim())
        if self.scheme is per_channel_affine_float_qparams:
            return (ints.to(_C.float32) - point) * scale.to(_C.float32)
        if self.dtype is qint32:
            ints, point = ints.to(_C.int64) - point, 0
        return _C.ops.dequantize_affine(ints, scale, point)

    def to(self, device: Any) -> Quantizer:
        """The same quantizer with its tensors on a device."""
        move = {
            name: value.to(device) for name in ("scale", "zero_point") if isinstance(value := getattr(self, name), Tensor)
        }
        return replace(self, **move) if move else self


def _quantize_int32(scaled: Tensor, zero_point: int | Tensor) -> Tensor:
    """round(scaled) + zero_point within int32, where NaN becomes the smallest integer."""
    low, high = qint32.limits
    rounded = scaled.round() + (zero_point.to(_C.float32) if isinstance(zero_point, Tensor) else zero_point)
    return rounded.to(_C.float64).nan_to_num(nan=low, posinf=high, neginf=low).clamp(low, high).to(_C.int32)


def check_quantized_dtype(dtype: Any, what: str) -> QuantizedDType:
    """Returns the dtype. Raises RuntimeError if it is not quantized."""
    if not isinstance(dtype, QuantizedDType):
        raise RuntimeError(f"[{what}] expected a quantized dtype such as torch.quint8, got {dtype}")
    return dtype


def check_zero_point(zero_point: int, dtype: QuantizedDType, what: str) -> int:
    """Returns the zero point. Raises RuntimeError if it is outside the dtype's range, as PyTorch does."""
    low, high = dtype.limits
    if zero_point > high:
        raise RuntimeError(f"{what} zero_point {zero_point} is above upper bound.")
    if zero_point < low:
        raise RuntimeError(f"{what} zero_point {zero_point} is below lower bound.")
    return zero_point
