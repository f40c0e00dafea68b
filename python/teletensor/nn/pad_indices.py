"""The indices that pad a dimension by reflection, replication or wrapping around."""

from __future__ import annotations

import array
import functools

from .. import _C
from .._C import Tensor

_LONG_INDEX = 1 << 20  # elements; a longer index is computed in the engine


def pad_index(mode: str, size: int, before: int, after: int, device) -> Tensor:
    """The place in a dimension of `size` elements of each element of the padded dimension."""
    if before + size + after > _LONG_INDEX:
        return _long_index(mode, size, before, after, device)
    data = _index_bytes(mode, size, before, after)
    return _C.from_bytes(data, _C.int64, [len(data) // 8], device)


def _check_reflection(size: int, before: int, after: int) -> None:
    if max(before, after) >= size:
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at a dimension of size {size}"
        )


def _long_index(mode: str, size: int, before: int, after: int, device) -> Tensor:
    if mode == "reflect":
        _check_reflection(size, before, after)
    positions = _C.torch.arange(-before, size + after, device=device)
    if mode == "reflect":
        return (size - 1) - (positions.abs() - (size - 1)).abs()
    if mode == "replicate":
        return positions.clamp(0, size - 1)
    if mode == "circular":
        return positions % size
    raise NotImplementedError(f"Unrecognised padding mode {mode}")


@functools.lru_cache(maxsize=64)  # layers repeat the same padding
def _index_bytes(mode: str, size: int, before: int, after: int) -> bytes:
    positions = range(-before, size + after)
    if mode == "reflect":
        _check_reflection(size, before, after)
        index = [abs(p) if p < size else 2 * (size - 1) - p for p in positions]
    elif mode == "replicate":
        index = [min(max(p, 0), size - 1) for p in positions]
    elif mode == "circular":
        index = [p % size for p in positions]
    else:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return array.array("q", index).tobytes()
