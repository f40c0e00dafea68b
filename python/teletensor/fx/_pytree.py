"""Flattening of a generated function's arguments by the structure that was traced."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable

from ..utils._pytree import TreeSpec, tree_flatten

FlattenFuncSpec = Callable[[Any, TreeSpec], list]
FlattenFuncExactMatchSpec = Callable[[Any, TreeSpec], bool]
SUPPORTED_NODES: dict[type, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: FlattenFuncSpec, flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None
) -> None:
    """Registers how a container of this type is flattened: `flatten_fn_spec(container, spec)` returns its children."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list:
    """The leaves of a container that has at least the structure `spec`.

    Raises:
        RuntimeError: a container of an unregistered type has another structure.
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        children = SUPPORTED_NODES[spec.type](pytree, spec)
        return [leaf for child, below in zip(children, spec.children()) for leaf in tree_flatten_spec(child, below)]
    leaves, found = tree_flatten(pytree)
    if spec != found:
        raise RuntimeError(f"Real spec {found} of object {pytree} is different from expected spec {spec}.")
    return leaves


def _first(values: Any, spec: TreeSpec) -> list:
    return [values[i] for i in range(spec.num_children)]


def _same_length(values: Any, spec: TreeSpec) -> bool:
    return len(values) == spec.num_children


register_pytree_flatten_spec(dict, lambda values, spec: [values[key] for key in spec.context], _same_length)
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _first, _same_length)
