"""torch.ao.nn.quantized.functional: functions of quantized tensors."""

from __future__ import annotations

import warnings
from typing import Any

from .... import _C, ops
from .... import _quantized_names as q
from ...._C import Tensor
from ....nn import functional as F
from ....nn.modules.utils import _ntuple

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d", "conv3d",
    "elu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d", "max_pool2d",
    "threshold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _check(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The means of windows (N, C, H, W)."""
    _check(input, "avg_pool2d")
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The means of windows (N, C, D, H, W)."""
    _check(input, "avg_pool3d")
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that give ``output_size``."""
    _check(input, "functional.adaptive_avg_pool2d")
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that give ``output_size``."""
    _check(input, "functional.adaptive_avg_pool3d")
    return F.adaptive_avg_pool3d(input, output_size)


def _conv(n: int, input: Tensor, weight: Tensor, bias: Any, options: tuple, padding_mode: str, scale: float, point: int) -> Tensor:
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype != q.quint8:
        raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
    if weight.dtype != q.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    if input.dim() != n + 2:
        raise ValueError(f"Input shape must be `({', '.join(('N', 'C', 'D', 'H', 'W')[: n + 2])})`!")
    stride, padding, dilation, groups = options
    sizes = [_ntuple(n)(value) for value in (stride, padding, dilation)]
    packed = getattr(ops.quantized, f"conv{n}d_prepack")(weight, bias, *sizes, groups)
    return getattr(ops.quantized, f"conv{n}d")(input, packed, scale, point)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = q.quint8,
) -> Tensor:  # fmt: skip
    """A convolution of quint8 (N, C, L) with a qint8 weight."""
    _check_result(dtype)
    return _conv(1, input, weight, bias, (stride, padding, dilation, groups), padding_mode, scale, zero_point)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = q.quint8,
) -> Tensor:  # fmt: skip
    """A convolution of quint8 (N, C, H, W) with a qint8 weight."""
    _check_result(dtype)
    return _conv(2, input, weight, bias, (stride, padding, dilation, groups), padding_mode, scale, zero_point)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = q.quint8,
) -> Tensor:  # fmt: skip
    """A convolution of quint8 (N, C, D, H, W) with a qint8 weight."""
    _check_result(dtype)
    return _conv(3, input, weight, bias, (stride, padding, dilation, groups), padding_mode, scale, zero_point)


def _check_result(dtype: Any) -> None:
    if dtype != q.quint8:
        raise NotImplementedError(f"expected dtype=torch.quint8 of the result, got {dtype}")


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None) -> Tensor:
    """Resizes (N, C, H, W) or (N, C, D, H, W)."""
    _check(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, scale: float | None = None, zero_point: int | None = None
) -> Tensor:
    """The product of quint8 (..., in) and a qint8 weight (out, in); by default with the input's scale and zero point."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return ops.quantized.linear(input, ops.quantized.linear_prepack(weight, bias), scale, zero_point)


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The largest numbers of windows (N, C, L)."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The largest numbers of windows (N, C, H, W)."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (exp(x / alpha) - 1) if x is negative."""
    _check(input, "celu")
    return ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, scale: float | None = None, zero_point: int | None = None
) -> Tensor:
    """x, or negative_slope * x if x is negative; by default with the input's scale and zero point."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return ops.quantized.leaky_relu(input, negative_slope, False, scale, zero_point)
    return F.leaky_relu(input, negative_slope, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Numbers limited to a range."""
    _check(input, "hardtanh")
    return F.hardtanh(input, min_val, max_val, inplace)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """x * clamp(x + 3, 0, 6) / 6."""
    _check(input, "hardswish")
    return ops.quantized.hardswish(input, scale, zero_point)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x if it exceeds the threshold, else the value."""
    _check(input, "threshold")
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return ops.quantized.threshold(input, threshold, value)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (exp(x) - 1) if x is negative."""
    _check(input, "elu")
    return ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """clamp(x + 3, 0, 6) / 6 with the scale 1 / 256."""
    _check(input, "hardsigmoid")
    return F.hardsigmoid(input, inplace)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """Numbers limited to a range."""
    _check(input, "clamp")
    return _C.torch.clamp(input, min_, max_)


def _deprecated(name: str) -> None:
    warnings.warn(f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=3)


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None) -> Tensor:
    """The older name of interpolate."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate(mode="bilinear", align_corners=True)."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate(mode="nearest")."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")
