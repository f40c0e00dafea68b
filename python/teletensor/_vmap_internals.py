"""torch._vmap_internals: the older names of torch.func.vmap, which libraries import from here."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .func.batching import vmap as _map

__all__ = ["vmap"]


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Callable:
    """torch.func.vmap with a FutureWarning."""
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Callable:
    """Returns a function that maps `func` over a dimension of its arguments, as torch.func.vmap.

    Args:
        allow_none_pass_through: an element of the tuple that `func` returns may be None, and is None in the result.
    """
    if not allow_none_pass_through:
        return _map(func, in_dims, out_dims)

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        places: list[int | None] = []  # of each element of the tuple among those that are not None

        def present(*entries: Any) -> Any:
            result = func(*entries)
            if not isinstance(result, tuple):
                return result
            kept = [r for r in result if r is not None]
            numbers = iter(range(len(kept)))
            places[:] = [None if r is None else next(numbers) for r in result]
            return tuple(kept)

        if not isinstance(out_dims, tuple):
            results = _map(present, in_dims, out_dims)(*args)
            return tuple(None if place is None else results[place] for place in places) if isinstance(results, tuple) else results
        results = _map(present, in_dims, 0)(*args)
        outputs = len(places) if isinstance(results, tuple) else 1
        if len(out_dims) != outputs:
            raise ValueError(f"vmap: `out_dims` must have one dim per output (got {outputs} outputs), got {out_dims}")
        if not isinstance(results, tuple):
            return results.movedim(0, out_dims[0])
        pairs = zip(places, out_dims, strict=True)
        return tuple(None if place is None else results[place].movedim(0, dim) for place, dim in pairs)

    return mapped
