"""Products of activations with quantized weights, in the engine's integer kernels."""

from __future__ import annotations

from ... import _C
from ..._C import Tensor
from ..._grad_mode import is_grad_enabled
from ...nn import functional as F

_FLOATS = (_C.float32, _C.float16, _C.bfloat16)
INT4_GROUPS = (32, 64, 128, 256)  # the groups of columns that the engine's kernel computes with


def _has_kernels(x: Tensor) -> bool:
    """Whether the engine multiplies integers on the tensor's device. Plug-in devices may lack the kernels, and compute with others."""
    return x.device.type in ("cpu", "cuda", "meta")


def needs_gradient(tensor: Tensor | None) -> bool:
    """Whether gradients of a tensor are recorded; the integer kernels have none."""
    return tensor is not None and tensor.requires_grad and is_grad_enabled()


def int8_weight_product(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """``x @ weight.T * scale`` with float activations.

    Args:
        x: (rows, in), floating-point; weight: (out, in), int8; scale: (out,) or (1,), float32.
    """
    if not _has_kernels(x) or needs_gradient(x):
        if x.dtype == _C.float16:  # sums of products with integers exceed its range
            return (F.linear(x.to(_C.float32), weight.to(_C.float32)) * scale).to(x.dtype)
        return F.linear(x, weight.to(x.dtype)) * scale.to(x.dtype)
    return _C.ops.int8_weight_mm(x, weight, scale)


def int8_product(x: Tensor, weight: Tensor, x_scale: Tensor, scale: Tensor, x_point: Tensor | None) -> Tensor:
    """``((x - x_point) * x_scale) @ (weight * scale).T`` in float32.

    Args:
        x: (rows, in), int8; weight: (out, in), int8; x_scale, x_point: (rows, 1) or (1, 1); scale: (1, out) or (1, 1).
    """
    if _has_kernels(x):
        sums = _C.ops.int8_linear(x, weight, 0, 0).to(_C.float32)
    else:
        sums = F.linear(x.to(_C.float64), weight.to(_C.float64)).to(_C.float32)  # exact, as sums of integers are
    result = sums * x_scale
    if x_point is not None:
        result = result - x_point.to(_C.float32) * x_scale * weight.sum(-1, dtype=_C.int64).to(_C.float32)
    return result * scale


def int8_rows(x: Tensor, reduce_range: bool) -> tuple[Tensor, Tensor]:
    """(integers, scales (rows, 1)) of activations (rows, in), symmetric with one scale per row, as choose_qparams_affine() has them."""
    if x.dtype not in _FLOATS:
        raise AssertionError(f"Unsupported input dtype: {x.dtype}")
    low, high = (-64, 63) if reduce_range else (-128, 127)
    scale = (x.abs().amax(-1, keepdim=True).to(_C.float32) / ((high - low) / 2)).clamp(min=2.0**-23)
    return (x * (1.0 / scale)).round().clamp(low, high).to(_C.int8), scale


def int8_dynamic_product(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None, reduce_range: bool) -> Tensor | None:
    """``x @ (weight * scale).T + bias`` with activations quantized per row, with zero points: one operator. None: not for these.

    Args:
        x: (..., in), floating-point; weight: (out, in), int8; scale: `out` numbers, float32.
    """
    if not _has_kernels(x) or x.dtype != _C.float32 or reduce_range:
        return None
    return _C.ops.int8_linear_dynamic(x, weight, scale, 0, bias, False, True, False)


def has_int4_kernel(shape: tuple[int, ...], group_size: int) -> bool:
    """Whether the engine's kernel multiplies 4-bit weights of this shape in groups of this size."""
    return group_size in INT4_GROUPS and shape[1] % group_size == 0


def int4_weight_product(x: Tensor, packed: Tensor, grid: Tensor, group_size: int) -> Tensor:
    """``x @ weight.T`` with weights ``(q - 8) * scale + zero``.

    Args:
        x: (rows, in), floating-point; packed: (out, in / 2), uint8, of kernel_int4(), or of pack_int4() if
            has_int4_kernel() is false.
        grid: (in / group_size, out, 2): scales and zeros.
    """
    in_kernel = has_int4_kernel((packed.shape[0], packed.shape[1] * 2), group_size)
    if in_kernel and _has_kernels(x) and not needs_gradient(x):
        return _C.ops.int4_weight_mm(x, packed, group_size, grid)
    values = values_of_kernel_int4(packed) if in_kernel else unpack_int4(packed)
    return F.linear(x, int4_weight(values, grid, group_size, x.dtype))


def int4_weight(values: Tensor, grid: Tensor, group_size: int, dtype: _C.dtype) -> Tensor:
    """The weights ``(q - 8) * scale + zero`` of values 0 to 15 (out, in) as an ordinary tensor."""
    grouped = (values.to(grid.dtype) - 8).reshape(values.shape[0], -1, group_size)
    scale, zero = grid[..., 0].t().unsqueeze(-1), grid[..., 1].t().unsqueeze(-1)
    return (grouped * scale + zero).reshape(values.shape).to(dtype)


def pack_int4(values: Tensor) -> Tensor:
    """Two values 0 to 15 in each byte, the even column in the low 4 bits: (out, in) to (out, in / 2), uint8."""
    return values[..., ::2].to(_C.uint8) | (values[..., 1::2].to(_C.uint8) << 4)


def unpack_int4(packed: Tensor) -> Tensor:
    """The inverse of pack_int4(): uint8 values 0 to 15."""
    return _C.torch.stack((packed & 15, packed >> 4), -1).reshape(*packed.shape[:-1], -1)


def kernel_int4(values: Tensor) -> Tensor:
    """Two values 0 to 15 in each byte, as the engine's kernel reads them: of each 32 columns, byte i has i and 16 + i."""
    runs = values.to(_C.uint8).reshape(values.shape[0], -1, 2, 16)
    return (runs[:, :, 0] | (runs[:, :, 1] << 4)).reshape(values.shape[0], -1)


def values_of_kernel_int4(packed: Tensor) -> Tensor:
    """The inverse of kernel_int4()."""
    runs = packed.reshape(packed.shape[0], -1, 1, 16)
    return _C.torch.cat((runs & 15, runs >> 4), 2).reshape(packed.shape[0], -1)
