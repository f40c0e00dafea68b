"""associative_scan: cumulative results of any associative function, in a logarithmic number of calls.

Blelloch, "Prefix sums and their applications", 1990: pairs of neighbours are combined, the halved sequence is scanned,
and each element between two of its results is combined with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C import Tensor, torch
from ..utils._pytree import tree_flatten, tree_unflatten

_MODES = ("pointwise", "generic")
_Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


def _interleaved(first: Tensor, second: Tensor) -> Tensor:
    """first[0], second[0], first[1], ...; `first` may have one more element."""
    count = second.shape[0]
    both = torch.stack([first[:count], second], 1).flatten(0, 1)
    return both if first.shape[0] == count else torch.cat([both, first[count:]])


def _scan(combine: _Combine, leaves: list[Tensor]) -> list[Tensor]:
    count = leaves[0].shape[0]
    if count < 2:
        return leaves
    pairs = combine([x[0 : count - 1 : 2] for x in leaves], [x[1::2] for x in leaves])
    odd = _scan(combine, pairs)
    before = odd if count % 2 else [x[:-1] for x in odd]
    even = combine(before, [x[2::2] for x in leaves]) if count > 2 else [x[:0] for x in leaves]
    return [_interleaved(torch.cat([x[:1], e]), o) for x, e, o in zip(leaves, even, odd)]


def _check(combine_fn: Any, leaves: list[Any], dim: Any, reverse: Any, combine_mode: str) -> None:
    if not callable(combine_fn):
        raise ValueError(f"[associative_scan] expected combine_fn to be callable, got {combine_fn!r}")
    if not isinstance(dim, int):
        raise ValueError(f"[associative_scan] expected dim to be an int, got {type(dim).__name__}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"[associative_scan] expected reverse to be a bool, got {type(reverse).__name__}")
    if combine_mode not in _MODES:
        raise ValueError(f"[associative_scan] expected combine_mode to be one of {_MODES}, got {combine_mode!r}")
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError(f"[associative_scan] expected xs to contain tensors only, got {[type(x).__name__ for x in leaves]}")


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Inclusive scan: result[i] is combine_fn(result[i - 1], xs[i]) along a dimension.

    Args:
        combine_fn: an associative function of two values like `xs`. With the mode "pointwise" it receives many elements
            at once; with "generic", elements without the dimension.
        xs: a tensor, or a nested list, tuple or dict of tensors, which have the same size along the dimension.
        dim: the dimension.
        reverse: begin at the last element.
        combine_mode: "pointwise" or "generic".

    Returns:
        a value like `xs`. Gradients are computed as usual.

    Raises:
        ValueError: an argument has another type or value, or sizes differ.
    """
    leaves, spec = tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    moved = [x.movedim(dim, 0) for x in leaves]
    if len({x.shape[0] for x in moved}) > 1:
        raise ValueError(f"[associative_scan] expected the same size along dim {dim}, got {[list(x.shape) for x in leaves]}")
    if combine_mode == "generic":
        from ..func import vmap

        combine_fn = vmap(combine_fn)

    def combine(first: list[Tensor], second: list[Tensor]) -> list[Tensor]:
        results, found = tree_flatten(combine_fn(tree_unflatten(first, spec), tree_unflatten(second, spec)))
        if found != spec:
            raise RuntimeError(f"[associative_scan] expected combine_fn to return a value like xs, {spec}, got {found}")
        return results

    results = _scan(combine, [x.flip(0) for x in moved] if reverse else moved)
    return tree_unflatten([(x.flip(0) if reverse else x).movedim(0, dim) for x in results], spec)
