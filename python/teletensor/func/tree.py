"""Trees: values in nested tuples, lists and dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable


def leaves(tree: Any) -> list:
    """Returns the leaves of the tree, in order; the values of a dictionary in insertion order."""
    if isinstance(tree, (tuple, list)):
        return [leaf for branch in tree for leaf in leaves(branch)]
    if isinstance(tree, dict):
        return [leaf for branch in tree.values() for leaf in leaves(branch)]
    return [tree]


def rebuild(tree: Any, values: list) -> Any:
    """Returns a tree of the same structure with `values` as its leaves."""
    return _rebuild(tree, iter(values))


def _rebuild(branch: Any, rest: Iterator) -> Any:
    # Not a function within rebuild(), whose reference to itself would keep the values until the next garbage collection.
    if isinstance(branch, (tuple, list)):
        made = [_rebuild(b, rest) for b in branch]
        return type(branch)(*made) if hasattr(branch, "_fields") else type(branch)(made)
    if isinstance(branch, dict):
        return {key: _rebuild(b, rest) for key, b in branch.items()}
    return next(rest)


def map_leaves(function: Callable, tree: Any) -> Any:
    """Returns the tree with the function applied to each leaf."""
    return rebuild(tree, [function(leaf) for leaf in leaves(tree)])


def broadcast(prefix: Any, tree: Any, is_end: Callable[[Any], bool]) -> list:
    """Returns the value of `prefix` for each leaf of the tree; a leaf of `prefix` applies to the whole subtree."""
    if is_end(prefix):
        return [prefix] * len(leaves(tree))
    if type(prefix) is not type(tree) or len(prefix) != len(tree):
        raise ValueError(f"[vmap] expected in_dims and out_dims to match the inputs and outputs, got {prefix!r}")
    pairs = [(prefix[key], tree[key]) for key in tree] if isinstance(tree, dict) else zip(prefix, tree)
    return [end for pair in pairs for end in broadcast(*pair, is_end)]
