"""TreeSpec: the structure of a pytree."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

from ..._lazy import set_module
from ._registry import BUILTIN_TYPES, STANDARD_DICT_TYPES, SUPPORTED_NODES, ConstantNode, node_type


class TreeSpec:
    """The structure of a pytree: the root's type and context, and the structures of its children. Immutable."""

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]):
        if type is None and context is not None:
            raise AssertionError("leaf node should not have a context")
        if type is None and children_specs:
            raise AssertionError("leaf node should not have children")
        values = {
            "type": type, "_context": context, "_children": children_specs,
            "num_nodes": 1 + sum(child.num_nodes for child in children_specs),
            "num_leaves": 1 if type is None else sum(child.num_leaves for child in children_specs),
            "num_children": len(children_specs),
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete field {name!r}")

    def __reduce__(self):
        return (TreeSpec, (self.type, self._context, self._children))

    def __repr__(self, indent: int = 0) -> str:
        indent += 2
        children = (",\n" + " " * indent).join(child.__repr__(indent) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return str(self.type) == str(other.type) and self._context == other._context and self._children == other._children

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in (dict, OrderedDict):
            context = tuple(context)
        elif isinstance(context, ConstantNode):
            context = context.value
        elif self.type is not None and self.type not in BUILTIN_TYPES:
            context = None  # need not be hashable
        return hash((self.type, context, tuple(self._children)))

    @property
    def context(self) -> Any:
        """The data, other than the children, from which the root is rebuilt."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The deprecated name of children()."""
        return self._children

    def is_leaf(self) -> bool:
        """Whether the root is a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the root's children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self._children[index]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Returns the subtrees of `tree` at the positions of this structure's leaves.

        Raises:
            ValueError: the upper part of `tree` has another structure.
        """
        if self.is_leaf():
            return [tree]
        children = self._matching_children(tree)
        return [subtree for child, spec in zip(children, self._children) for subtree in spec.flatten_up_to(child)]

    def _matching_children(self, tree: Any) -> list[Any]:
        kind, builtin = node_type(tree), self.type in BUILTIN_TYPES
        dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES  # compatible with each other
        if kind != self.type and not dicts:
            what = "Node type" if builtin else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            missing, extra = set(keys).difference(tree), set(tree).difference(keys)
            if missing or extra:
                text = (f"; missing key(s): {missing}" if missing else "") + (f"; extra key(s): {extra}" if extra else "")
                raise ValueError(f"Node keys mismatch{text}.")
            return [tree[key] for key in keys]
        if self.type is not deque and context != self._context:  # the maxlen of deques may differ
            if not builtin:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected {self._context!r}, but got {context!r}."
            )
        return list(children)

    def unflatten(self, leaves: Iterable) -> Any:
        """Builds a pytree of this structure from its leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves) -> Any:
        if self.is_leaf():
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self._context)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, None, [])

    def __repr__(self, indent: int = 0) -> str:
        return "*"

    def __reduce__(self):
        return (treespec_leaf, ())


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """Returns the structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Returns the structure of a tuple with the given children."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping=(), /, **kwargs: TreeSpec) -> TreeSpec:
    """Returns the structure of a dict with the given children."""
    children = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


set_module("teletensor.utils._pytree", LeafSpec, TreeSpec)
