"""Resampling and patch functions of torch.nn.functional that have more arguments than their operators."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._integers import repeated
from .._layouts import keep_channels_last
from .._options import check_floating
from . import antialiasing, byte_resampling

_ops = _C.ops


def interpolate(
    input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resamples the dimensions after the first two to a size, or by a factor."""
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if mode == "lanczos" and input.dim() == 4:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    spatial = input.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError("only one of size or scale_factor should be defined")
    factors: list[float] = []
    if size is not None:
        sizes = repeated(size, len(spatial))
    else:
        many = isinstance(scale_factor, (list, tuple))
        factors = [float(f) for f in (scale_factor if many else [scale_factor] * len(spatial))]
        if len(factors) != len(spatial):
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(spatial)} and scale_factor of shape {factors}"
            )
        sizes = [_scaled(n, f) for n, f in zip(spatial, factors)]
    return resample(input, sizes, mode, bool(align_corners), [] if recompute_scale_factor else factors, antialias)


def resample(
    input: Tensor, sizes: list[int], mode: str, align_corners: bool, factors: list[float], antialias: bool
) -> Tensor:
    """interpolate() to sizes. Factors, if given, replace the ratios of the sizes."""
    if input.dtype == _C.uint8 and input.dim() == 4 and mode in ("bilinear", "bicubic", "lanczos"):
        return keep_channels_last(byte_resampling.resample(input, sizes, mode, align_corners, factors, antialias), input)
    if antialias:
        return keep_channels_last(antialiasing.resample(input, sizes, mode, align_corners, factors), input)
    return _ops.interpolate(input, sizes, mode, align_corners, factors)


def _scaled(size: int, factor: float) -> int:
    """floor(size * factor), for most factors without a conversion to float, which would make a recorded size constant."""
    if factor.is_integer():
        return size * int(factor)
    if factor in (0.5, 0.25, 0.125):
        return size // int(1 / factor)
    return math.floor(size * factor)


def upsample(
    input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """interpolate under its deprecated name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Extracts the windows of (N, C, H, W) as columns (N, C * kh * kw, windows)."""
    if not input.is_complex() and input.dtype is not _C.bool:
        check_floating("unfold", input=input)
    return _ops.im2col(input, repeated(kernel_size, 2), repeated(dilation, 2), repeated(padding, 2), repeated(stride, 2))


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Sums columns (N, C * kh * kw, windows) into the windows of an image (N, C, *output_size)."""
    return _ops.col2im(
        input, repeated(output_size, 2), repeated(kernel_size, 2), repeated(dilation, 2), repeated(padding, 2), repeated(stride, 2)
    )


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Nearest-neighbour interpolate under its deprecated name."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Bilinear interpolate with aligned corners under its deprecated name."""
    return interpolate(input, size, scale_factor, "bilinear", True)
