"""Checks of a graph's consistency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._names import typename

if TYPE_CHECKING:
    from .graph import Graph
    from .node import Node

_OPS = ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output")


def lint(graph: Graph) -> None:
    """Raises RuntimeError or ValueError if a node is not well-formed."""
    names: set[str] = set()
    defined: set[Node] = set()
    for node in graph.nodes:
        if node.op not in _OPS:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        if node not in graph._find_nodes_lookup_table:
            raise RuntimeError(f"Node '{node}' is not added to the side table")
        for arg in node._input_nodes:
            _check_argument(graph, node, arg, defined)
        defined.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
    if graph.owning_module:
        for node in graph.nodes:
            _check_target(graph.owning_module, node)


def _check_argument(graph: Graph, node: Node, arg: Node, defined: set) -> None:
    if arg.graph is not graph:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
            f"copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{graph}"
        )
    if arg not in defined:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph "
            f"are topologically ordered\n{graph}"
        )


def _check_target(owner: Any, node: Node) -> None:
    from .. import nn

    if node.op == "call_function":
        if not callable(node.target):
            raise ValueError(f"Node {node} target {node.target} has type {typename(node.target)} but a Callable is expected")
    elif not isinstance(node.target, str):
        raise ValueError(f"Node {node} target {node.target} has type {typename(node.target)} but a str is expected")
    if node.op not in ("get_attr", "call_module"):
        return
    parts = node.target.split(".")
    for i, part in enumerate(parts):
        found, path = getattr(owner, part, None), ".".join(parts[:i])
        if found is None:
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {path}")
        if node.op == "call_module" and not isinstance(found, nn.Module):
            raise RuntimeError(f"Node {node} target {node.target} {part} of {path} does not reference an nn.Module")
        owner = found
