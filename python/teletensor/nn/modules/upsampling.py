"""Modules for resampling."""

from __future__ import annotations

from .. import functional as F
from ..common_types import _ratio_2_t, _ratio_any_t, _size_2_t, _size_any_t  # noqa: F401 - programs import these from here
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """functional.interpolate as a module: enlarges or reduces (N, C, L), (N, C, H, W) or (N, C, D, H, W).

    Args:
        size: of the output, an int or one per dimension.
        scale_factor: multiplies the input's sizes, a number or one per dimension. One of both is required.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area", which must fit the
            dimensions.
        align_corners: whether corner pixels keep their values, of the linear and cubic modes.
        recompute_scale_factor: whether the scale is computed from the sizes.

    Raises:
        ValueError: both or none of size and scale_factor are given.
        NotImplementedError: the mode does not fit the dimensions of an input.

    >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(map(float, scale_factor))
        elif scale_factor:
            scale_factor = float(scale_factor)
        self.name, self.size, self.scale_factor, self.mode = type(self).__name__, size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input):
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        target = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with nearest-neighbour interpolation."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Upsample with bilinear interpolation and aligned corners."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)
