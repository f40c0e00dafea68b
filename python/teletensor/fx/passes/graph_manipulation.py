"""Replacement of targets, and the sizes of nodes' results in bytes."""

from __future__ import annotations

from typing import NamedTuple

from ..._C import Tensor
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, Target
from .shape_prop import ShapeProp, TensorMetadata

__all__ = ["replace_target_nodes_with", "size_bytes", "get_size_of_all_nodes", "get_tensor_meta", "get_size_of_node"]


def replace_target_nodes_with(fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target) -> None:
    """Replaces the opcode and target of all nodes that have these; they lose their `meta`. Generates the module's code."""
    graph, copies = Graph(), {}
    for node in fx_module.graph.nodes:
        copied = copies[node] = graph.node_copy(node, copies.__getitem__)
        if node.op == old_op and node.target == old_target:
            copied.op, copied.target, copied.meta = new_op, new_target, {}
    graph._codegen = fx_module.graph._codegen
    fx_module.graph = graph


class size_bytes(NamedTuple):  # noqa: N801 - PyTorch's name
    """The size of a node's result, and with its parameters, in bytes."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Sets `size_bytes` of all nodes but the output.

    Args:
        args: inputs, with which ShapeProp runs first; None if it has run.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """The metadata that ShapeProp recorded for a node's result.

    Raises:
        RuntimeError: nothing.
    """
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The sizes of a node's result and of its submodule's parameters, in bytes."""
    meta = get_tensor_meta(node)
    parameters = fx_module.get_submodule(node.target).parameters() if node.op == "call_module" else ()
    output, size = meta.shape.numel(), meta.dtype.itemsize
    return size_bytes(size * output, size * (output + sum(p.numel() for p in parameters)))
