"""Indexing as in the standard: negative steps, masks without elements, and indices of every integer dtype."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor

_torch = _C.torch


def get_item(x: Tensor, key: Any) -> Tensor:
    """Returns x[key]."""
    mask = _empty_mask(x, key)
    if mask is not None:
        return _torch.empty((0, *x.shape[mask.ndim :]), dtype=x.dtype, device=x.device)
    key, flipped = _with_positive_steps(x, key)
    return Tensor.__getitem__(x.flip(flipped) if flipped else x, key)


def set_item(x: Tensor, key: Any, value: Any) -> None:
    """Sets x[key] = value."""
    value = Tensor(value) if isinstance(value, Tensor) else value
    if _empty_mask(x, key) is not None:
        return
    key, flipped = _with_positive_steps(x, key)
    if not flipped:
        return Tensor.__setitem__(x, key, value)
    backward = x.flip(flipped)
    Tensor.__setitem__(backward, key, value)
    x.copy_(backward.flip(flipped))


def _empty_mask(x: Tensor, key: Any) -> Tensor | None:
    """Returns the key if it is a mask without elements, which selects nothing; otherwise None."""
    if not isinstance(key, Tensor) or key.dtype is not _C.bool or key.numel() != 0:
        return None
    if key.ndim > x.ndim or any(n not in (m, 0) for n, m in zip(key.shape, x.shape)):
        raise IndexError(f"a mask of shape {tuple(key.shape)} does not match an array of shape {tuple(x.shape)}")
    return key


def _with_positive_steps(x: Tensor, key: Any) -> tuple[Any, list[int]]:
    """Returns the key with positive steps only, and the axes along which x must be flipped before indexing."""
    if not isinstance(key, tuple):
        key = (key,)
    key = tuple(_as_index(k) for k in key)
    axis_counts = [_axes_consumed(k) for k in key]
    axis, flipped, forward = 0, [], []
    for k, axis_count in zip(key, axis_counts):
        if k is Ellipsis:
            axis_count = x.ndim - sum(axis_counts)
        elif isinstance(k, slice) and axis < x.ndim:
            if k.step is not None and k.step < 0:
                flipped.append(axis)
                k = _reversed(k, x.shape[axis])
        forward.append(k)
        axis += axis_count
    return tuple(forward), flipped


def _as_index(k: Any) -> Any:
    if isinstance(k, Tensor):
        k = Tensor(k)
        return k if k.dtype is _C.bool or k.dtype is _C.int64 else k.to(_C.int64)  # uint8 would be treated as a mask
    return k


def _axes_consumed(k: Any) -> int:
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return k.ndim if isinstance(k, Tensor) and k.dtype is _C.bool else 1


def _reversed(k: slice, size: int) -> slice:
    """The slice of the reversed axis that selects the same elements as k."""
    indices = range(size)[k]
    if not indices:
        return slice(0, 0)
    return slice(size - 1 - indices[0], size - indices[-1], -indices.step)
