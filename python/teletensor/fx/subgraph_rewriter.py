"""replace_pattern: replaces the subgraphs of a module that match a pattern."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from .. import nn
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg

if TYPE_CHECKING:
    from .passes.utils.matcher_utils import InternalMatch

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]


class Match(NamedTuple):
    """A subgraph that was replaced: the node that matched the pattern's last node, and the graph's node for each node
    of the pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A subgraph that was replaced, and the new nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule
) -> list[Match]:
    """Replaces all subgraphs that match a pattern, in place. Overlapping matches are replaced once.

    Args:
        gm: the module to change.
        pattern: a function or module with the operations to find; its parameters match any value.
        replacement: a function or module with as many parameters and results.

    Returns:
        The matches.
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """replace_pattern() with conditions.

    Args:
        match_filters: functions of the match, the graph and the pattern's graph; all must return True.
        ignore_literals: constants match any constant.
        replacement_callback: returns the replacement for each match.
        node_name_match: nodes whose name contains this text match the pattern's last node.

    Returns:
        The matches with the new nodes.
    """
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(program: Callable | Graph | GraphModule) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    from .passes.utils.matcher_utils import SubgraphMatcher

    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match for match in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(match, graph, pattern_graph) for accepts in match_filters or [])
    ]  # fmt: skip
    common = None if replacement is None else _graph_of(replacement)
    changed: dict[Node, Node] = {}  # results of subgraphs that were replaced, and their new nodes
    replaced = []
    for match in matches:
        new = replacement_callback(match, graph, pattern_graph) if replacement_callback is not None else common
        replaced.append(_replace_match(graph, pattern_graph, match, new, changed))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _replace_attributes(gm, replacement)
    return replaced


def _replace_match(
    graph: Graph, pattern_graph: Graph, match: InternalMatch, replacement: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    """Replaces one subgraph by a copy of the replacement."""
    placeholders = replacement.find_nodes(op="placeholder")
    if len(match.placeholder_nodes) != len(placeholders):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(placeholders)}")
    copies: dict[Node, Any] = {}
    for i, pattern_node in enumerate(pattern_graph.find_nodes(op="placeholder")):
        value = map_arg(match.placeholder_nodes[i], lambda node: changed.get(node, node))
        copies[placeholders[i]] = match.placeholder_nodes[i] = match.nodes_map[pattern_node] = value
    with graph.inserting_before(_insertion_point(graph, match.returning_nodes)):
        results = graph.graph_copy(replacement, copies)
    results = (results,) if isinstance(results, Node) else results
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    new = [node for node in copies.values() if isinstance(node, Node) and node not in match.placeholder_nodes]
    for old, result in zip(match.returning_nodes, results):
        old.replace_all_uses_with(result)
        changed[old] = result
    for node in reversed(pattern_graph.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, new)


def _insertion_point(graph: Graph, returning: list[Node]) -> Node:
    """The node before which the replacement is inserted: the first user of the results, or the node after the last
    result.
    """
    users = {user for node in returning for user in node.users}
    if users:
        return min(users)
    return max(returning).next


def _replace_attributes(gm: GraphModule, replacement: nn.Module) -> None:
    """Copies the attributes that the replacement's nodes read into the module."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _attribute(gm, node.target) is not None:
            continue
        found = _attribute(replacement, node.target)
        if found is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        if isinstance(found, nn.Module):
            gm.add_submodule(node.target, copy.deepcopy(found))
        else:
            setattr(gm, node.target, copy.deepcopy(found))
    gm.graph.lint()


def _attribute(module: nn.Module, target: str) -> Any:
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None
