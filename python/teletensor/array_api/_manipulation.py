"""Functions that move, join and repeat elements."""

from __future__ import annotations

from typing import Any

from .. import _C, _functions
from .._C import Tensor
from ._dtypes import promote_to_tensors

__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat",
    "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip

_torch = _C.torch


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Expands the arrays to their common shape."""
    return list(_functions.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Expands the array to a shape."""
    return x.expand(tuple(shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Joins the arrays along an axis; flattens them first if axis is None."""
    tensors = promote_to_tensors(*arrays)
    return _torch.cat([t.reshape(-1) for t in tensors] if axis is None else list(tensors), axis or 0)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Joins the arrays along a new axis."""
    return _torch.stack(list(promote_to_tensors(*arrays)), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    if x.ndim == 0:
        raise ValueError("[unstack] expected an array of at least one dimension, got 0")
    return tuple(x.unbind(axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Inserts axes of size 1 at the given positions of the result."""
    axes = non_negative_axes((axis,) if isinstance(axis, int) else axis, x.ndim + (1 if isinstance(axis, int) else len(axis)))
    for position in sorted(axes):
        x = x.unsqueeze(position)
    return x


def non_negative_axes(axes: Any, ndim: int) -> list[int]:
    """Converts negative axes to non-negative axes. Raises IndexError if out of range, ValueError for duplicates."""
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis {axis} is out of bounds for an array of {ndim} dimensions")
    positions = [axis % ndim for axis in axes]
    if len(set(positions)) < len(positions):
        raise ValueError(f"expected distinct axes, got {tuple(axes)}")
    return positions


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Removes the given axes, which must have size 1."""
    positions = non_negative_axes((axis,) if isinstance(axis, int) else axis, x.ndim)
    for position in positions:
        if x.shape[position] != 1:
            raise ValueError(f"cannot squeeze axis {position} of size {x.shape[position]}")
    return x.reshape([n for d, n in enumerate(x.shape) if d not in positions])


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Reverses x along the given axes, or along all axes if axis is None."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(non_negative_axes(axes, x.ndim))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Moves axes to other positions."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Permutes the axes."""
    return x.permute(tuple(axes))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Changes the shape: returns a view if possible, unless a copy is requested."""
    if copy is False:
        return x.view(tuple(shape))
    return (x.clone() if copy else x).reshape(tuple(shape))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Rotates the elements along axes; elements shifted past the end reappear at the front."""
    if axis is None:
        return x.reshape(-1).roll(shift, 0).reshape(x.shape) if x.ndim else x.clone()
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return x.roll(shifts, axes) if axes else x.clone()


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeats x along each axis."""
    return _torch.tile(x, tuple(repetitions))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeats each slice along an axis, or each element if axis is None. Waits for the engine if given an array."""
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    if isinstance(repeats, int):
        return _torch.repeat_interleave(x, repeats, axis)
    count = x.shape[axis]
    ends = repeats.to(_C.int64).reshape(-1).expand(count).cumsum(0)
    total = int(ends[-1]) if count else 0
    return x.index_select(axis, _torch.searchsorted(ends, _torch.arange(total, device=x.device), right=True))
