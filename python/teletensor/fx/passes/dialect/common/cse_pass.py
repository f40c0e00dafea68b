"""CSEPass: computes equal expressions once."""

from __future__ import annotations

import functools
import operator
from typing import Any

from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node, _side_effectful_functions, map_arg
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM_NAMES = (
    "dropout", "alpha_dropout", "feature_alpha_dropout", "feature_dropout", "native_dropout", "bernoulli", "multinomial",
    "normal", "poisson", "binomial", "rrelu", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
)  # fmt: skip


@functools.lru_cache(maxsize=1)
def get_CSE_banned_ops() -> set:  # noqa: N802 - PyTorch's name
    """The functions that draw random numbers: equal calls have different results."""
    import teletensor
    from teletensor.nn import functional

    return {getattr(place, n) for place in (teletensor, functional) for n in _RANDOM_NAMES if hasattr(place, n)}


class CSEPass(PassBase):
    """Replaces nodes of equal target and arguments by the first of them.

    Operations with effects and random functions are kept, and modules' calls unless the module is in eval mode and has no
    hooks. A graph with in-place operations is not changed, since they may change any other value.

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
            key = None if node.is_impure() else self._key(graph_module, node, copies)
            if key in first:
                copies[node] = first[key]
                continue
            copies[node] = graph.node_copy(node, copies.__getitem__)
            if key is not None:
                first[key] = copies[node]
        if len(graph.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, graph, type(graph_module).__name__), True)

    def _key(self, module: GraphModule, node: Node, copies: dict[Node, Node]) -> Any:
        """What is equal for equal expressions; None for a node that is kept."""
        banned = get_CSE_banned_ops()
        if node.op == "call_module" and not _is_pure(module.get_submodule(node.target)):
            return None
        if node.op == "call_function" and (node.target in self.banned_ops or node.target in banned):
            return None
        if node.op == "call_method" and (node.target in self.banned_ops or node.target in _RANDOM_NAMES):
            return None
        args, kwargs = (map_arg(a, copies.__getitem__) for a in (node.args, node.kwargs))
        try:
            return node.op, node.target, _typed(args), _typed(kwargs)
        except TypeError:  # an argument cannot be hashed
            return None


def _changes_values(node: Node) -> bool:
    """Whether a call changes a value in place."""
    if node.op == "call_module":
        modules = node.graph.owning_module.get_submodule(node.target).modules()
        return any(getattr(module, "inplace", False) is True for module in modules)
    registered = node.op == "call_function" and node.target in _side_effectful_functions - {operator.setitem}
    return node.is_impure(impure_random=False) and not registered


def _is_pure(module: Any) -> bool:
    """Whether equal calls of a module have equal results."""
    return all(not (m.training or m._forward_hooks or m._forward_pre_hooks) for m in module.modules())


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
