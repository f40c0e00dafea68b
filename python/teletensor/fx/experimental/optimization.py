"""Optimizations of modules for inference: fusion of batch norms, removal of dropout."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "matches_module_pattern", "replace_node_module", "fuse", "remove_dropout", "extract_subgraph", "UnionFind",
    "optimize_for_inference",
]  # fmt: skip


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether a node and its first argument call modules of two types."""
    if not node.args:
        return False
    for kind, candidate in zip(pattern, (node.args[0], node)):
        if not isinstance(candidate, Node) or candidate.op != "call_module":
            return False
        if type(modules.get(candidate.target)) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, nn.Module], new_module: nn.Module) -> None:
    """Replaces the module that a node calls, in its parent and in the dict."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


_FUSED = (
    (nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d), (nn.Linear, nn.BatchNorm1d),
)  # fmt: skip


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Fuses each batch norm into the convolution or linear layer before it, for inference.

    Args:
        model: a module in eval mode. Batch norms without running statistics, layers with other users, and layers that
        are called more than once are unchanged. inplace: changes the model's own layers instead of a copy. no_trace:
        takes a GraphModule's graph instead of tracing it.

    Returns:
        A GraphModule.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    calls: dict[str, int] = {}
    for node in graph.find_nodes(op="call_module", sort=False):
        calls[node.target] = calls.get(node.target, 0) + 1
    for pattern in _FUSED:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            before = node.args[0]
            layer, norm = modules[before.target], modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats or max(calls[before.target], calls[node.target]) > 1:
                continue
            fused = (fuse_linear_bn_eval if pattern[0] is nn.Linear else fuse_conv_bn_eval)(layer, norm)
            replace_node_module(before, modules, fused)
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _DropoutRemover(Transformer):
    """Replaces calls of Dropout by their argument."""

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], nn.Dropout):
            if len(args) != 1:
                raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: nn.Module) -> nn.Module:
    """A GraphModule of the model without its Dropout modules."""
    return _DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module of copies of some nodes.

    Args:
        orig_module: has the attributes that the nodes name.
        nodes: the nodes in the order of execution.
        inputs: nodes that become placeholders.
        outputs: nodes whose values the module returns as a list.
    """
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


class UnionFind:
    """Disjoint sets of numbers below n."""

    def __init__(self, n: int) -> None:
        self.parent: list[int | None] = [None] * n
        self.size = [0] * n

    def make_set(self, v: int) -> None:
        """Makes a set of one number."""
        self.parent[v], self.size[v] = v, 1

    def find(self, v: int) -> int:
        """The number that represents the set of v."""
        parent = self.parent[v]
        if parent is None:
            raise AssertionError("Parent is None")
        if parent != v:
            self.parent[v] = parent = self.find(parent)
        return parent

    def join(self, a: int, b: int) -> int:
        """Joins the sets of two numbers; returns the representative of the result."""
        a, b = self.find(a), self.find(b)
        if a != b:
            a, b = (a, b) if self.size[a] >= self.size[b] else (b, a)
            self.parent[b] = a
            self.size[a] += self.size[b]
        return a


def optimize_for_inference(
    model: nn.Module, pass_config: dict[str, Any] | None = None, tracer: type[Tracer] = Tracer
) -> nn.Module:
    """Fuses batch norms and removes dropout.

    Args:
        model: a module in eval mode.
        pass_config: {"conv_bn_fuse": False} and {"remove_dropout": False} leave out a pass. mkldnn_layout_optimize must
        be absent or False: the engine selects layouts itself. tracer: must be the default.
    """
    options = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": False, **(pass_config or {})}
    if options["mkldnn_layout_optimize"] is not False:
        raise NotImplementedError("[optimize_for_inference] mkldnn_layout_optimize: tensors have no oneDNN layout in Python")
    if tracer is not Tracer:
        raise NotImplementedError("[optimize_for_inference] a tracer of your own; trace the model and call fuse(no_trace=True)")
    if options["conv_bn_fuse"]:
        model = fuse(model)
    return remove_dropout(model) if options["remove_dropout"] else model
