"""Interpolation and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable, translates


def resized(
    b: Builder, x: Value, sizes: Any, scales: Any, mode: str, align_corners: bool | None, antialias: bool = False
) -> Value:
    """Resize of the dimensions behind the first two, by scales if they are known, otherwise to sizes."""
    n = x.rank - 2
    options: dict[str, Any] = {"axes": list(range(2, 2 + n))}
    if mode == "nearest":
        options |= {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        options |= {
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "round_prefer_ceil",
        }
    else:
        options["mode"] = "cubic" if mode == "bicubic" else "linear"
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        if mode == "bicubic":
            options["cubic_coeff_a"] = -0.5 if antialias else -0.75
        if antialias:
            options["antialias"] = 1
    scale_values = [float(s) for s in scales] if scales is not None and all(s is not None for s in scales) else None
    work = x if x.dtype in (_C.float32, _C.float64, _C.float16, _C.uint8) else b.cast(x, _C.float32)
    if mode not in ("nearest", "nearest-exact") and all(type(s) is int for s in x.shape[2:]) and scale_values is None:
        if [int(s) if type(s) is int else s for s in sizes] == list(x.shape[2:]):
            return x
    if scale_values is not None:
        made = b.op("Resize", work, None, b.const(scale_values, _C.float32), **options)
    else:
        made = b.op("Resize", work, None, None, b.ints(list(sizes)), **options)
    return b.cast(made, x.dtype)


def _sizes_for(x: Value, output_size: Any, scale_factors: Any) -> Any:
    if output_size is not None:
        return output_size
    if all(type(s) is int for s in x.shape[2:]):
        return [int(n * s) for n, s in zip(x.shape[2:], scale_factors)]
    return None


def _vec(mode: str, aligned: bool) -> Any:
    def translate(b: Builder, input: Value, output_size: Any, *rest: Any) -> Value:  # noqa: A002 - the schema's name
        align_corners = rest[0] if aligned else None
        factors = rest[-1]
        return resized(
            b,
            input,
            _sizes_for(input, output_size, factors),
            factors if output_size is None else None,
            mode,
            align_corners,
        )

    return translate


def _sized(mode: str, aligned: bool, antialias: bool = False) -> Any:
    def translate(b: Builder, self: Value, output_size: Sequence[Any], *rest: Any, **kwargs: Any) -> Value:
        align_corners = (rest[0] if rest else kwargs.get("align_corners")) if aligned else None
        scales = list(rest[1:] if aligned else rest)
        return resized(
            b,
            self,
            output_size,
            scales if scales and all(s is not None for s in scales) else None,
            mode,
            align_corners,
            antialias,
        )

    return translate


for _name, _mode, _aligned in (
    ("upsample_nearest1d", "nearest", False), ("upsample_nearest2d", "nearest", False), ("upsample_nearest3d", "nearest", False),
    ("_upsample_nearest_exact1d", "nearest-exact", False), ("_upsample_nearest_exact2d", "nearest-exact", False),
    ("_upsample_nearest_exact3d", "nearest-exact", False), ("upsample_linear1d", "linear", True), ("upsample_bilinear2d", "bilinear", True),
    ("upsample_trilinear3d", "trilinear", True), ("upsample_bicubic2d", "bicubic", True),
):  # fmt: skip
    TRANSLATIONS[f"aten.{_name}.vec"] = _vec(_mode, _aligned)
    TRANSLATIONS[f"aten.{_name}.default"] = _sized(_mode, _aligned)
TRANSLATIONS["aten._upsample_bilinear2d_aa.default"] = _sized("bilinear", True, True)
TRANSLATIONS["aten._upsample_bicubic2d_aa.default"] = _sized("bicubic", True, True)


_MODES = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")


@translates("aten.grid_sampler.default aten.grid_sampler_2d.default aten.grid_sampler_3d.default")
def _grid_sampler(
    b: Builder, input: Value, grid: Value, interpolation_mode: Any, padding_mode: Any, align_corners: bool = False
) -> Value:  # noqa: A002
    mode = _MODES[interpolation_mode] if isinstance(interpolation_mode, int) else interpolation_mode
    padding = _PADDING[padding_mode] if isinstance(padding_mode, int) else padding_mode
    if b.opset < 20:
        if input.rank == 5:
            raise Untranslatable("sampling of volumes needs opset 20")
    else:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return b.op("GridSample", input, grid, mode=mode, padding_mode=padding, align_corners=int(bool(align_corners)))


@translates("aten.affine_grid_generator.default")
def _affine_grid(b: Builder, theta: Value, size: Sequence[Any], align_corners: bool = False) -> Value:
    import numpy as np

    if any(type(n) is not int for n in size[2:]):
        raise Untranslatable("an affine grid of dynamic sizes")
    axes = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(line if align_corners else line * (n - 1) / n)
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones_like(mesh[0])], -1).reshape(1, -1, len(axes) + 1)
    made = b.op("MatMul", b.const(base, theta.dtype), b.transpose(theta, [0, 2, 1]))
    return b.reshape(made, [size[0], *size[2:], len(axes)], b.shape)
