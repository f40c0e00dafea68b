"""Functions over pytrees: flatten, unflatten, map, predicates, and the variants with key paths."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from ._registry import SUPPORTED_NODES, KeyPath, PyTree, node_type
from ._treespec import TreeSpec, treespec_leaf


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether the object is a leaf: not a registered container, or is_leaf(tree) is true."""
    return (is_leaf is not None and bool(is_leaf(tree))) or node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """Returns the leaves and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, is_leaf, leaves)


def _flatten(node: PyTree, is_leaf: Callable[[PyTree], bool] | None, leaves: list[Any]) -> TreeSpec:
    # Not a function within tree_flatten(), whose reference to itself would keep the leaves until the next garbage collection.
    if tree_is_leaf(node, is_leaf):
        leaves.append(node)
        return treespec_leaf()
    kind = node_type(node)
    children, context = SUPPORTED_NODES[kind].flatten_fn(node)
    return TreeSpec(kind, context, [_flatten(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """Builds a pytree from leaves and a structure (in either order)."""
    if not isinstance(treespec, TreeSpec):
        if not isinstance(leaves, TreeSpec):
            raise TypeError(
                f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
            )
        leaves, treespec = treespec, leaves
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator[Any]:
    """Iterates over the leaves."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """Returns the leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """Returns the structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Applies func to the leaves of `tree` and to the subtrees of `rests` at the same positions."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Like tree_map, for functions that change the leaves in place; returns `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for args in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests)):
        func(*args)
    return tree


def _selects(type_or_types_or_pred) -> Callable[[Any], bool]:
    if isinstance(type_or_types_or_pred, (type, tuple, getattr(types, "UnionType", tuple))):
        return lambda x: isinstance(x, type_or_types_or_pred)
    if callable(type_or_types_or_pred):
        return type_or_types_or_pred
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred, /) -> Callable[[Callable], Callable]:
    """Decorates a function of one argument: arguments of other types are returned unchanged."""
    selected = _selects(type_or_types_or_pred)

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def apply(x):
            return func(x) if selected(x) else x

        return apply

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree: PyTree, is_leaf=None) -> PyTree:
    """Applies func to the leaves of a type, or for which a predicate is true."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree: PyTree, is_leaf=None) -> PyTree:
    """Like tree_map_only, for functions that change the leaves in place; returns `tree`."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    """Whether pred is true for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    """Whether pred is true for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    """Whether pred is true for all leaves of a type."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    """Whether pred is true for any leaf of a type."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Returns the leaves of all arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf=None) -> list[Any] | None:
    """Repeats each leaf of `tree` for the leaves of the structure below it; None if `tree` is not a prefix of it."""
    result: list[Any] = []
    full = treespec.unflatten([0] * treespec.num_leaves)
    try:
        tree_map_(lambda x, below: result.extend([x] * tree_structure(below, is_leaf).num_leaves), tree, full, is_leaf=is_leaf)
    except ValueError:
        return None
    return result


# -- key paths


def _leaves_with_path(path: KeyPath, tree: PyTree, is_leaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = node_type(tree)
    flatten = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if flatten is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, child in flatten(tree)[0]:
        yield from _leaves_with_path((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf=None) -> list[tuple[KeyPath, Any]]:
    """Returns the (key path, leaf) pairs."""
    return list(_leaves_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf=None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Returns the (key path, leaf) pairs and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf=None) -> PyTree:
    """Like tree_map; func receives the leaf's key path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(path, leaf, *xs) for (path, leaf), *xs in zip(pairs, *others))


def keystr(kp: KeyPath) -> str:
    """Returns a key path as text, such as ``['a'][0].weight``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Returns the part of an object at a key path."""
    for key in kp:
        obj = key.get(obj)
    return obj
