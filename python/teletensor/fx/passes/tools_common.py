"""Helpers of passes: names of targets, topological sorting, groups of nodes that must stay together."""

from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Mapping
from typing import Any

from ... import nn
from ..._C import Tensor
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

__all__ = [
    "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "FxNetAccFusionsFinder", "legalize_graph",
    "stable_topological_sort",
]  # fmt: skip

Tensors = Any  # a tuple or list of tensors
TensorOrTensors = Any
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: str | type) -> str:
    """The qualified name of a type or function; acc_ops.<name> for one of a module acc_ops."""
    if isinstance(k, str):
        return k
    module = k.__module__ or ""
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    first, dot, rest = module.partition(".")
    return f"{'torch' if first == 'teletensor' else first}{dot}{rest}.{k.__name__}"


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """The target of a call node: the submodule's type, the function's qualified name or the method's name."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        submodule = submodules[node.target]
        return get_acc_ops_name(getattr(submodule, "_base_class_origin", type(submodule)))
    if node.op == "call_function":
        acc = "acc_ops" in (node.target.__module__ or "")
        return f"acc_ops.{node.target.__name__}" if acc else _get_qualified_name(node.target)
    return node.target


def is_node_output_tensor(node: Node) -> bool:
    """Whether ShapeProp found that the node's result is a tensor."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, Tensor)


class FxNetAccFusionsFinder:
    """Finds the groups of nodes that pass values other than tensors, and therefore must be in one submodule.

    Args:
        module: a module over which ShapeProp has run.
        acc_nodes: the nodes to group; nodes of groups that are only partly in the set are removed from it.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module, self.acc_nodes = module, acc_nodes
        self.nodes = list(module.graph.nodes)

    def __call__(self) -> dict[Node, NodeSet]:
        """The group of each node that has one."""
        group_of: dict[Node, NodeSet] = {}
        for node in self.nodes:
            if node in group_of or node not in self.acc_nodes or "tensor_meta" in node.meta:
                continue
            if node.op not in CALLABLE_NODE_OPS:
                continue
            group = self._close(self._linked(node))
            if group <= self.acc_nodes:
                group_of.update(dict.fromkeys(group, group))
            else:
                self.acc_nodes -= group
        return group_of

    @staticmethod
    def _linked(start: Node) -> NodeSet:
        """The calls that are linked to a node by values that are not tensors."""
        group, pending = {start}, [start]
        while pending:
            node = pending.pop()
            linked = [arg for arg in node.all_input_nodes if "tensor_meta" not in arg.meta]
            if "tensor_meta" not in node.meta:
                linked += node.users
            for other in linked:
                if other.op in CALLABLE_NODE_OPS and other not in group:
                    group.add(other)
                    pending.append(other)
        return group

    def _close(self, group: NodeSet) -> NodeSet:
        """Adds the calls on paths from the group to itself, so that it can be one submodule."""
        first, last = min(group), max(group)
        after: NodeSet = set()  # depends on the group
        inside = [node for node in self.nodes if first <= node <= last and node.op in CALLABLE_NODE_OPS]
        for node in inside:
            if any(arg in group or arg in after for arg in node.all_input_nodes):
                after.add(node)
        closed = set(group)
        for node in reversed(inside):
            if node in after and any(user in closed for user in node.users):
                closed.add(node)
        return closed


_FIRST = {
    operator.add, operator.mul, operator.sub, operator.floordiv, operator.truediv, operator.mod, operator.le, operator.lt,
    operator.ge, operator.gt, operator.eq, operator.ne,
}  # fmt: skip


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sorts the nodes so that each comes after its inputs; arithmetic on numbers is moved as early as possible.

    Raises:
        RuntimeError: the graph has a cycle.
    """
    waits_for = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = deque(node for node, count in waits_for.items() if count == 0)
    ordered = []
    while ready:
        ordered.append(ready.popleft())
        for user in ordered[-1].users:
            waits_for[user] -= 1
            if waits_for[user] == 0:
                if user.op == "call_function" and user.target in _FIRST:
                    ready.appendleft(user)
                else:
                    ready.append(user)
    return _reordered(gm, ordered, [node for node, count in waits_for.items() if count], RuntimeError)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sorts the nodes so that each comes after its inputs, otherwise in their present order.

    Raises:
        AssertionError: the graph has a cycle.
    """
    position = {node: i for i, node in enumerate(gm.graph.nodes)}
    nodes = list(position)
    waits_for = {node: len(node.all_input_nodes) for node in nodes}
    ready = [i for i, node in enumerate(nodes) if waits_for[node] == 0]
    ordered = []
    while ready:
        ordered.append(nodes[heapq.heappop(ready)])
        for user in ordered[-1].users:
            waits_for[user] -= 1
            if waits_for[user] == 0:
                heapq.heappush(ready, position[user])
    return _reordered(gm, ordered, [node for node, count in waits_for.items() if count], AssertionError)


def _reordered(gm: GraphModule, ordered: NodeList, circular: NodeList, error: type[Exception]) -> GraphModule:
    """Sets a module's graph to copies of its nodes in an order."""
    if circular:
        raise error(f"Input graph has cycles, unable to add {circular}")
    graph, copies = Graph(tracer_cls=gm.graph._tracer_cls), {}
    for node in ordered:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm
