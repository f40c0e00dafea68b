"""Bilinear, bicubic and Lanczos resampling of uint8 images, in the integer arithmetic of PyTorch and Pillow.

Weights are rounded to multiples of a power of two, so that each fits in 16 bits. Width is resampled before height, and
each of the two results is rounded to uint8.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import _C
from .._C import Tensor
from . import antialiasing

_MAX_PRECISION = 22  # bits of a rounded weight's fraction, at most
Row = tuple[list[int], list[float]]  # the input elements of one output element and their weights


def _cubic(x: float) -> float:
    return antialiasing._cubic(x, a=-0.75)


def _row(center: float, size: int, taps: int, filter_: Callable[[float], float]) -> Row:
    """The weights around a place. Those of elements before the first and after the last are added to these."""
    first = math.floor(center) - taps // 2 + 1
    places, weights = [min(max(first + k, 0), size - 1) for k in range(taps)], [0.0] * taps
    for k, place in enumerate(places):
        weights[places.index(place)] += filter_(first + k - center)
    return places, weights


def _plain_rows(size: int, to: int, mode: str, align_corners: bool, factor: float | None) -> list[Row]:
    if align_corners:
        scale, shift = (size - 1) / (to - 1) if to > 1 else 0.0, 0.0
    else:
        scale, shift = 1 / factor if factor else size / to, 0.5
    antialiasing.check_count(4 * to)
    centers = [scale * (i + shift) - shift for i in range(to)]
    if mode == "bilinear":
        return [_row(max(c, 0.0), size, 2, antialiasing._triangle) for c in centers]
    return [_row(c, size, 4, _cubic) for c in centers]


def _antialiased_rows(size: int, to: int, mode: str, align_corners: bool, factor: float | None) -> list[Row]:
    rows = antialiasing.weights(size, to, mode, align_corners, factor)
    found = [[(j, w) for j, w in enumerate(row) if w != 0.0] for row in rows]
    count = max(map(len, found))
    padded = [row + [(0, 0.0)] * (count - len(row)) for row in found]
    return [([j for j, _ in row], [w for _, w in row]) for row in padded]


def _resample(input: Tensor, dim: int, rows: list[Row]) -> Tensor:
    largest, precision = max(max(weights) for _, weights in rows), 0
    while precision < _MAX_PRECISION and int(0.5 + largest * (1 << (precision + 1))) < 1 << 15:
        precision += 1
    rounded = [[int(math.copysign(0.5, w) + w * (1 << precision)) for w in weights] for _, weights in rows]
    places = _C.tensor([j for row, _ in rows for j in row], device=input.device)
    taps = _C.tensor(rounded, dtype=_C.int32, device=input.device)
    if dim == 2:
        taps = taps.unsqueeze(2)
    values = input.index_select(dim, places).unflatten(dim, (len(rows), -1)).to(_C.int32)
    total = (values * taps).sum(dim + 1, dtype=_C.int32) + (1 << precision >> 1)
    return (total >> precision).clamp(0, 255).to(_C.uint8)


def resample(
    input: Tensor, sizes: list[int], mode: str, align_corners: bool, factors: list[float], antialias: bool
) -> Tensor:
    """Implements interpolate() for uint8 images (N, C, H, W); returns uint8."""
    antialiasing.check_sizes(input, sizes)
    rows = _antialiased_rows if antialias else _plain_rows
    for dim in (3, 2):
        factor = factors[dim - 2] if factors else None
        input = _resample(input, dim, rows(input.shape[dim], sizes[dim - 2], mode, align_corners, factor))
    return input
