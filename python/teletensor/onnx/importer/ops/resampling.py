"""Resize, Upsample, GridSample and AffineGrid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _values
from .._call import Call, keeps

Tensor = torch.Tensor


class _Axis:
    """How one dimension is resampled."""

    def __init__(self, size: int, out: int, scale: float, roi: tuple[float, float], call: Call) -> None:
        self.size, self.out, self.scale, self.roi, self.call = size, out, scale, roi, call
        _values.bounded(out, "Resize")

    def coordinates(self) -> np.ndarray:
        """The place in the input of each output element."""
        mode = self.call.get("coordinate_transformation_mode", "asymmetric" if self.call.version < 11 else "half_pixel")
        x, scale, out = np.arange(self.out, dtype=np.float64), self.scale, self.scale * self.size
        if mode == "asymmetric":
            return x / scale
        if mode == "align_corners":
            return np.zeros(self.out) if out == 1 or self.out == 1 else x * (self.size - 1) / (out - 1)
        if mode == "pytorch_half_pixel":
            return np.zeros(1) if self.out == 1 else (x + 0.5) / scale - 0.5
        if mode == "half_pixel":
            return (x + 0.5) / scale - 0.5
        if mode == "half_pixel_symmetric":
            adjust = self.out / out
            return self.size / 2 * (1 - adjust) + (x + 0.5) / scale - 0.5
        if mode == "tf_half_pixel_for_nn":
            return (x + 0.5) / scale
        if mode == "tf_crop_and_resize":
            start, end = self.roi
            if self.out > 1:
                return start * (self.size - 1) + x * (end - start) * (self.size - 1) / (self.out - 1)
            return np.full(self.out, 0.5 * (start + end) * (self.size - 1))
        raise ValueError(f"[Resize] expected a known coordinate_transformation_mode, got {mode!r}")

    def nearest(self) -> np.ndarray:
        x = self.coordinates()
        mode = self.call.get("nearest_mode", "floor" if self.call.version < 11 else "round_prefer_floor")
        rounded = {
            "round_prefer_floor": lambda: np.ceil(x - 0.5), "round_prefer_ceil": lambda: np.floor(x + 0.5),
            "floor": lambda: np.floor(x), "ceil": lambda: np.ceil(x),
        }.get(mode)  # fmt: skip
        if rounded is None:
            raise ValueError(f"[Resize] expected a known nearest_mode, got {mode!r}")
        return rounded().clip(0, self.size - 1).astype(np.int64)

    def taps(self, kernel: Callable, reach: int) -> tuple[np.ndarray, np.ndarray]:
        """The input elements that each output element is made of, and their factors: (out, taps)."""
        x = self.coordinates()
        stretch = min(self.scale, 1.0) if self.call.get("antialias", 0) else 1.0
        support = int(np.ceil(reach / stretch))
        _values.bounded(2 * support * self.out, "Resize")
        first = np.floor(x).astype(np.int64) - support + 1
        places = first[:, None] + np.arange(2 * support)[None, :]
        factors = kernel((places - x[:, None]) * stretch)
        if self.call.get("exclude_outside", 0):
            factors = np.where((places < 0) | (places >= self.size), 0.0, factors)
        factors = factors / factors.sum(1, keepdims=True)
        return places.clip(0, self.size - 1), factors

    def applied(self, x: Tensor, dim: int, places: np.ndarray, factors: np.ndarray) -> Tensor:
        """The sums of the elements at `places` times `factors`, both (out, taps), along a dimension."""
        shape = [-1 if d == dim else 1 for d in range(x.dim())]
        total = None
        for tap in range(places.shape[1]):
            index = torch.from_numpy(np.ascontiguousarray(places[:, tap])).to(x.device)
            factor = torch.from_numpy(np.ascontiguousarray(factors[:, tap])).to(x.device).to(x.dtype).reshape(shape)
            part = x.index_select(dim, index) * factor
            total = part if total is None else total + part
        return total


def _linear_kernel(x: np.ndarray) -> np.ndarray:
    return np.clip(1 - np.abs(x), 0, None)


def _cubic_kernel(a: float) -> Callable:
    def kernel(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    return kernel


def _targets(call: Call, x: Tensor, roi: Any, scales: Any, sizes: Any) -> tuple[list[int], list, list, list]:
    """The axes with their new sizes, scales and regions."""
    axes = [a % x.dim() for a in call.get("axes") or range(x.dim())]
    own = [x.shape[a] for a in axes]
    empty = scales is None or 0 in _values.shape_of(scales)
    regions = [(0.0, 1.0)] * len(axes)
    if roi is not None and 0 not in _values.shape_of(roi):
        numbers = _values.numbers(roi)
        regions = list(zip(numbers[: len(axes)], numbers[len(axes) :]))
    if not empty:
        factors = _values.numbers(scales)
        crop = call.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        spans = [(e - s) if crop else 1.0 for s, e in regions]
        out = [n if f == 1.0 and p == 1.0 else int(np.floor(int(n) * p * f)) for n, f, p in zip(own, factors, spans)]
        return axes, out, factors, regions
    if sizes is None:
        raise ValueError("[Resize] expected scales or sizes, got neither")
    out = _values.ints(sizes)
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return axes, out, [1.0 if n is o or n == o else int(o) / int(n) for n, o in zip(own, out)], regions
    pick = min if policy == "not_larger" else max
    factor = pick(int(o) / int(n) for n, o in zip(own, out))
    out = [int(np.floor(int(n) * factor + 0.5)) for n in own]
    return axes, out, [factor] * len(axes), regions


def _native(call: Call, x: Tensor, axes: list[int], out: list, factors: list) -> Tensor | None:
    """The engine's own operator where its rules are those of the node, else None."""
    mode = call.get("mode", "nearest")
    transformation = call.get("coordinate_transformation_mode", "asymmetric" if call.version < 11 else "half_pixel")
    spatial = [o for a, o in zip(axes, out) if a >= 2]
    if x.dim() not in (3, 4, 5) or x.dtype not in (torch.float32, torch.float64) or len(spatial) != x.dim() - 2 or any(
        f != 1.0 for a, f in zip(axes, factors) if a < 2
    ) or call.get("antialias", 0) or call.get("exclude_outside", 0):  # fmt: skip
        return None
    steps = [f for a, f in zip(axes, factors) if a >= 2]
    exact = [int(o) == int(x.shape[a]) * f for a, o, f in zip(axes, out, factors) if a >= 2]
    if not all(exact):
        return None
    if (
        mode == "nearest"
        and transformation == "asymmetric"
        and call.get("nearest_mode", "floor" if call.version < 11 else "") == "floor"
    ):
        whole = all(f == int(f) for f in steps)
        return F.interpolate(x, scale_factor=[int(f) for f in steps], mode="nearest") if whole else None
    if (
        mode != "linear"
        or transformation not in ("half_pixel", "pytorch_half_pixel", "align_corners")
        or min(spatial) < 2
    ):
        return None
    kind = {3: "linear", 4: "bilinear", 5: "trilinear"}[x.dim()]
    return F.interpolate(x, size=spatial, mode=kind, align_corners=transformation == "align_corners")


@keeps(1, 2, 3)
def _resize(call: Call, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> Tensor:
    if call.version < 11:
        roi, scales = None, roi
    axes, out, factors, regions = _targets(call, x, roi, scales, sizes)
    found = _native(call, x, axes, out, factors)
    if found is not None:
        return found
    mode = call.get("mode", "nearest")
    crop = call.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    dtype = x.dtype
    work = x if dtype.is_floating_point and dtype.itemsize >= 4 or mode == "nearest" else x.to(torch.float32)
    outside: Any = None
    for a, o, f, region in zip(axes, out, factors, regions):
        if f == 1.0 and o == x.shape[a] and not (crop and region != (0.0, 1.0)):
            continue
        axis = _Axis(int(x.shape[a]), int(o), f, region, call)
        if crop:
            places = axis.coordinates()
            beyond = torch.from_numpy((places < 0) | (places > axis.size - 1)).to(x.device)
            beyond = beyond.reshape([-1 if d == a else 1 for d in range(x.dim())])
            outside = beyond if outside is None else outside | beyond
        if mode == "nearest":
            work = work.index_select(a, torch.from_numpy(axis.nearest()).to(x.device))
            continue
        if mode not in ("linear", "cubic", "bilinear"):
            raise ValueError(f"[Resize] expected a mode of nearest, linear or cubic, got {mode!r}")
        kernel = _cubic_kernel(call.get("cubic_coeff_a", -0.75)) if mode == "cubic" else _linear_kernel
        work = axis.applied(work, a, *axis.taps(kernel, 2 if mode == "cubic" else 1))
    if outside is not None:
        work = torch.where(outside, torch.full_like(work, call.get("extrapolation_value", 0.0)), work)
    if work.dtype != dtype and not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        work = torch.clamp(torch.round(work), info.min, info.max)
    return work.to(dtype)


@keeps(1)
def _upsample(call: Call, x: Tensor, scales: Any = None) -> Tensor:
    if scales is None:
        scales = np.asarray(
            call.get("scales") or [1, 1, call.get("height_scale", 1.0), call.get("width_scale", 1.0)], np.float32
        )
    return _resize(call, x, scales)


def _grid_sample(call: Call, x: Tensor, grid: Tensor) -> Tensor:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(call.get("mode", "bilinear"), call.get("mode", "bilinear"))
    return F.grid_sample(
        x,
        grid,
        mode=mode,
        padding_mode=call.get("padding_mode", "zeros"),
        align_corners=bool(call.get("align_corners", 0)),
    )


@keeps(1)
def _affine_grid(call: Call, theta: Tensor, size: Any) -> Tensor:
    return F.affine_grid(theta, _values.ints(size), bool(call.get("align_corners", 0)))


TABLE: dict[str, tuple] = {
    "Resize": ((10, _resize),), "Upsample": ((1, _upsample),), "GridSample": ((16, _grid_sample),), "AffineGrid": ((20, _affine_grid),),
}  # fmt: skip
