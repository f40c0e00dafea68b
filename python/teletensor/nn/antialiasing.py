"""Anti-aliased resampling. Widens the filter by the downsampling factor and applies it as one matrix per dimension."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._options import check_floating

_MAX_WEIGHTS = 1 << 26


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float, a: float = -0.5) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _lanczos(x: float) -> float:
    if x == 0 or abs(x) >= 3:
        return float(x == 0)
    x *= math.pi
    return math.sin(x) / x * math.sin(x / 3) / (x / 3)


_FILTERS = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0), "lanczos": (_lanczos, 3.0)}  # with half their widths


def check_count(weights: int) -> None:
    """Raises RuntimeError if the client would compute so many weights that it had no memory or time for them."""
    if weights > _MAX_WEIGHTS:
        raise RuntimeError(f"[interpolate] expected sizes that need at most {_MAX_WEIGHTS} weights per dimension, got {weights}")


def _weights(size: int, to: int, filter_, width: float, scale: float) -> list[list[float]]:
    """Returns one row per output element, which contains the weights of the input elements."""
    step = max(scale, 1.0)
    support = width * step
    rows = []
    for i in range(to):
        center = scale * (i + 0.5)  # also with align_corners, as in PyTorch
        first, last = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)
        row = [0.0] * size
        for j in range(first, last):
            row[j] = filter_((j - center + 0.5) / step)
        total = math.fsum(row) or 1.0
        rows.append([w / total for w in row])
    return rows


def weights(size: int, to: int, mode: str, align_corners: bool, factor: float | None) -> list[list[float]]:
    """The weights of `size` input elements for each of `to` output elements."""
    check_count(size * to)
    if align_corners:
        scale = (size - 1) / (to - 1) if to > 1 else 0.0
    else:
        scale = 1 / factor if factor else size / to
    return _weights(size, to, *_FILTERS[mode], scale)


def check(input: Tensor, mode: str) -> None:
    """Raises ValueError if interpolate(antialias=True) does not support the input or the mode."""
    if mode not in _FILTERS or input.dim() != 4:
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )


def check_sizes(input: Tensor, sizes: list[int]) -> None:
    """Raises RuntimeError if a spatial size of the input or the output is 0."""
    if min(*input.shape[2:], *sizes) <= 0:
        raise RuntimeError(
            "[interpolate] Input and output sizes should be greater than 0, "
            f"but got input {list(input.shape)} and output {list(sizes)}"
        )


def resample(input: Tensor, sizes: list[int], mode: str, align_corners: bool, factors: list[float]) -> Tensor:
    """Implements interpolate(antialias=True) over the last two dimensions."""
    check(input, mode)
    check_floating("interpolate", input=input)
    check_sizes(input, sizes)
    for d, to in zip((2, 3), sizes):
        rows = weights(input.shape[d], to, mode, align_corners, factors[d - 2] if factors else None)
        matrix = _C.tensor(rows, dtype=input.dtype, device=input.device)
        input = matrix @ input if d == 2 else input @ matrix.transpose(0, 1)
    return input
