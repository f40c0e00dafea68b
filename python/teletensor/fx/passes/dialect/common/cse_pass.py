"""CSEPass: computes equal expressions once."""

from __future__ import annotations

import operator
from typing import Any

from ...._purity import is_repeatable, random_functions
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node, _side_effectful_functions, map_arg
from ...infra.pass_base import PassBase, PassResult


def get_CSE_banned_ops() -> set:  # noqa: N802 - PyTorch's name
    """The functions that draw random numbers: equal calls have different results."""
    return set(random_functions())


class CSEPass(PassBase):
    """Replaces nodes of equal target and arguments by the first of them.

    Operations with effects, random functions, and functions, methods and modules that are not teletensor's or Python's are
    kept. A graph with in-place operations is not changed, since they may change any other value.

    Args:
        banned_ops: further targets that are kept.
    """

    def __init__(self, banned_ops: set | None = None) -> None:
        self.banned_ops = set(banned_ops or ())

    def call(self, graph_module: GraphModule) -> PassResult:
        """Returns the module, or a new one with fewer nodes."""
        if any(node.op.startswith("call") and _changes_values(node) for node in graph_module.graph.nodes):
            return PassResult(graph_module, False)
        graph = Graph(tracer_cls=graph_module.graph._tracer_cls)
        graph._codegen = graph_module.graph._codegen
        copies: dict[Node, Node] = {}
        first: dict[Any, Node] = {}
        for node in graph_module.graph.nodes:
            key = self._key(node, copies) if node.target not in self.banned_ops and is_repeatable(node) else None
            if key is not None and key in first:
                copies[node] = first[key]
                continue
            copies[node] = graph.node_copy(node, copies.__getitem__)
            if key is not None:
                first[key] = copies[node]
        if len(graph.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, graph, type(graph_module).__name__), True)

    @staticmethod
    def _key(node: Node, copies: dict[Node, Node]) -> Any:
        """A key that is equal for equal expressions; None if an argument cannot be hashed."""
        args, kwargs = (map_arg(a, copies.__getitem__) for a in (node.args, node.kwargs))
        try:
            return node.op, node.target, _typed(args), _typed(kwargs)
        except TypeError:
            return None


def _changes_values(node: Node) -> bool:
    """Whether a call changes a value in place."""
    if node.op == "call_module":
        modules = node.graph.owning_module.get_submodule(node.target).modules()
        return any(getattr(module, "inplace", False) is True for module in modules)
    registered = node.op == "call_function" and node.target in _side_effectful_functions - {operator.setitem}
    return node.is_impure(impure_random=False) and not registered


def _typed(value: Any) -> Any:
    """A value that is equal only for arguments of equal types: 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple)):
        return type(value), tuple(_typed(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _typed(v)) for k, v in value.items())
    if isinstance(value, slice):
        return slice, _typed(value.start), _typed(value.stop), _typed(value.step)
    hash(value)
    return type(value), repr(value) if isinstance(value, float) else value
