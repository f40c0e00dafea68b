"""Functions that search, select and sort elements."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C
from .._C import Tensor
from ._dtypes import promote_operands

__all__ = [
    "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "where",
]  # fmt: skip

_torch = _C.torch


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, x2 elsewhere."""
    return _torch.where(condition, *promote_operands(x1, x2))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements along each axis. Waits for the engine."""
    if x.ndim == 0:
        raise ValueError("[nonzero] expected an array of at least one dimension, got 0")
    return tuple(x.nonzero().unbind(1))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts the elements along an axis."""
    return _torch.sort(x, stable=stable, dim=axis, descending=descending)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the elements along an axis."""
    return _torch.argsort(x, axis, descending, stable)


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The insertion index of each element of x2 in x1, which must be sorted, or in x1[sorter] if `sorter` is given."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side must be 'left' or 'right', got {side!r}")
    if not isinstance(x2, Tensor):
        x2 = _C.tensor(x2, dtype=x1.dtype, device=x1.device)
    x1, x2 = promote_operands(x1 if sorter is None else x1[sorter], x2)
    return _torch.searchsorted(x1, x2, right=side == "right")


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at the given indices along an axis."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take(): axis must be given for an array of {x.ndim} dimensions")
    axis = (axis or 0) % x.ndim
    return x[(slice(None),) * axis + (indices.to(_C.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at the given indices along an axis; one index per element of the result."""
    return _torch.take_along_dim(x, indices.to(_C.int64), axis)


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The sorted distinct elements, with the index of their first occurrence, inverse indices and counts.

    NaNs do not equal each other, so each NaN is a distinct element. Waits for the engine.
    """
    flat = x.reshape(-1)
    count = flat.shape[0]
    order = _stable_argsort(flat)
    ordered = flat[order]
    new = _torch.ones((count,), dtype=_C.bool, device=x.device)
    if count > 1:
        new[1:] = ordered[1:] != ordered[:-1]
    starts = new.nonzero().reshape(-1)
    ends = _torch.cat([starts[1:], _torch.full((min(count, 1),), count, dtype=_C.int64, device=x.device)])
    inverse = _torch.zeros((count,), dtype=_C.int64, device=x.device).scatter(0, order, new.cumsum(0) - 1)
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), ends - starts)


def _stable_argsort(flat: Tensor) -> Tensor:
    """The indices that sort a vector stably; complex numbers are ordered by real, then imaginary part."""
    if not flat.dtype.is_complex:
        return _torch.argsort(flat, 0, False, True)
    order = _torch.argsort(flat.imag, 0, False, True)
    return order[_torch.argsort(flat.real[order], 0, False, True)]


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The values and counts of unique_all()."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The values and inverse indices of unique_all()."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The values of unique_all()."""
    return unique_all(x).values
