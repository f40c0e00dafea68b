"""Trees: values in the containers that torch.utils._pytree knows, also those that a program registers."""

from __future__ import annotations

from typing import Any, Callable

from ..utils._pytree import _broadcast_to_and_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten

leaves = tree_leaves
map_leaves = tree_map
structure = tree_structure


def rebuild(tree: Any, values: list) -> Any:
    """Returns a tree of the same structure with `values` as its leaves."""
    return tree_unflatten(values, tree_structure(tree))


def broadcast(prefix: Any, tree: Any, is_end: Callable[[Any], bool]) -> list:
    """Returns the value of `prefix` for each leaf of the tree; a leaf of `prefix` applies to the whole subtree."""
    ends = _broadcast_to_and_flatten(prefix, tree_structure(tree))
    if ends is None or not all(map(is_end, ends)):
        raise ValueError(f"[vmap] expected in_dims and out_dims to match the inputs and outputs, got {prefix!r}")
    return ends
