"""Replacement of groups of nodes by calls of submodules."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Iterable

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import Proxy
from ._partitions import validate_partition
from .common import lift_subgraph_as_module

NodeList = list[Node]


def topo_sort(nodes: NodeList) -> NodeList:
    """The nodes in topological order; otherwise in the given order."""
    position = {node: i for i, node in enumerate(nodes)}
    waits_for = {node: sum(n in position for n in node.all_input_nodes) for node in nodes}
    ready = [i for i, node in enumerate(nodes) if waits_for[node] == 0]
    ordered = []
    while ready:
        ordered.append(nodes[heapq.heappop(ready)])
        for user in ordered[-1].users:
            if user in position:
                waits_for[user] -= 1
                if waits_for[user] == 0:
                    heapq.heappush(ready, position[user])
    if len(ordered) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ordered


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: dict | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of copies of the nodes.

    Args:
        nodes: nodes of `gm` in the order of execution.
        partition_lookup_table: a dict whose keys are the nodes.
        always_return_tuple: the module returns a tuple for one result too.

    Returns:
        The module, and the nodes of `gm` that are its inputs and outputs.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = partition_lookup_table if partition_lookup_table is not None else dict.fromkeys(nodes)
    inputs = list(dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside))
    if inputs and all(node.op == "placeholder" for node in inputs):
        inputs.sort()
    subgraph = Graph()
    copies: dict[Node, Node] = {}
    for node in inputs:
        copies[node] = subgraph.placeholder(node.name, type_expr=node.type)
        copies[node].meta = copy.copy(node.meta)
    for node in nodes:
        copies[node] = subgraph.node_copy(node, copies.__getitem__)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copies[node] for node in outputs)
    subgraph.output(results if always_return_tuple or len(results) != 1 else results[0])
    subgraph.lint()
    fused, _ = lift_subgraph_as_module(gm, subgraph, comp_name="", class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Adds a call of a module to the graph of `gm`, and uses its results for the outputs' users.

    Args:
        insertion_point: the node after which the call is inserted; by default the last of the outputs.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        if not orig_outputs:
            raise AssertionError("expected an insertion_point for a submodule without outputs")
        insertion_point = max(orig_outputs)
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs)
    if not orig_outputs:
        return gm
    with gm.graph.inserting_before(call.next):
        if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
        for i, output in enumerate(orig_outputs):
            output.replace_all_uses_with(Proxy(call)[i].node, propagate_meta=True)
        call.meta["val"] = tuple(output.meta.get("val") for output in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Removes nodes that are given in the order of execution."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Iterable[dict[Node, int | None]], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Replaces each partition, a dict whose keys are nodes, by a call of a submodule <prefix><i>; changes `gm`."""
    from ..tools_common import stable_topological_sort

    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        fused, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, fused, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
