"""Products of activations with quantized weights, in the engine's integer kernels."""

from __future__ import annotations

from ... import _C
from ..._C import Tensor
from ...nn import functional as F


def int8_weight_product(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """``x @ weight.T * scale`` with float activations.

    Args:
        x: (rows, in), floating-point; weight: (out, in), int8; scale: (out,) or (1,), float32.
    """
    return F.linear(x, weight.to(x.dtype)) * scale.to(x.dtype)


def int8_product(x: Tensor, weight: Tensor, x_scale: Tensor, scale: Tensor, x_point: Tensor | None) -> Tensor:
    """``((x - x_point) * x_scale) @ (weight * scale).T`` in float32.

    Args:
        x: (rows, in), int8; weight: (out, in), int8; x_scale, x_point: (rows, 1) or (1, 1); scale: (1, out) or (1, 1).
    """
    result = _C.torch._int_mm(x, weight.t()).to(_C.float32) * x_scale
    if x_point is not None:
        result = result - x_point.to(_C.float32) * x_scale * weight.sum(-1, dtype=_C.int64).to(_C.float32)
    return result * scale


def int4_weight_product(x: Tensor, packed: Tensor, scale: Tensor, zero_point: Tensor, group_size: int) -> Tensor:
    """``x @ weight.T`` with weights ``(q - 8) * scale + zero_point``.

    Args:
        x: (rows, in), floating-point; packed: (out, in / 2), uint8, the even column in the low 4 bits, values 0 to 15.
        scale, zero_point: (in / group_size, out).
    """
    return F.linear(x, int4_weight(packed, scale, zero_point, group_size, x.dtype))


def int4_weight(packed: Tensor, scale: Tensor, zero_point: Tensor, group_size: int, dtype: _C.dtype) -> Tensor:
    """The weights ``(q - 8) * scale + zero_point`` as an ordinary tensor (out, in)."""
    values = unpack_int4(packed).to(scale.dtype) - 8
    grouped = values.reshape(packed.shape[0], -1, group_size)
    return (grouped * scale.t().unsqueeze(-1) + zero_point.t().unsqueeze(-1)).reshape(values.shape).to(dtype)


def pack_int4(values: Tensor) -> Tensor:
    """Two values 0 to 15 in each byte, the even column in the low 4 bits: (out, in) to (out, in / 2), uint8."""
    return values[..., ::2].to(_C.uint8) | (values[..., 1::2].to(_C.uint8) << 4)


def unpack_int4(packed: Tensor) -> Tensor:
    """The inverse of pack_int4(): uint8 values 0 to 15."""
    return _C.torch.stack((packed & 15, packed >> 4), -1).reshape(*packed.shape[:-1], -1)
