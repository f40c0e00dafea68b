"""SubgraphMatcher: finds the subgraphs of a graph that are equal to a pattern."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...._C import Tensor
from ..._attributes import _get_attr
from ...graph import Graph
from ...node import Node
from ._partitions import validate_partition

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """A subgraph that matches.

    Attributes:
        anchors: the pattern's last nodes. nodes_map: the graph's node for each node of the pattern; for a placeholder
        possibly a constant. placeholder_nodes, returning_nodes: the graph's nodes for the pattern's inputs and outputs,
        in order. name_node_map: the graph's nodes by names that a SubgraphMatcherWithNameNodeMap's pattern returns.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes))


class SubgraphMatcher:
    """Finds subgraphs.

    Args:
        pattern: the graph to find; its placeholders match any value; all uses of a placeholder must match the same
        value. match_output: the pattern's output must be the graph's. match_placeholder: the pattern's placeholders
        must be placeholders of the graph. remove_overlapping_matches: of matches that share nodes, returns only the
        first. ignore_literals: constants match any constant.

    Raises:
        ValueError: the pattern is empty.
        AssertionError: the pattern has results that are not used.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        for node in pattern.nodes:
            if not node.users and node.op != "output" and (node.op == "call_module" or not node.is_impure()):
                raise AssertionError("SubgraphMatcher cannot be initialized with a pattern with dead code")
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        # A node that is returned and used is not an end of the pattern.
        ends = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches in a graph, in the order of their first anchor.

        Args:
            node_name_match: nodes whose name contains this text match any anchor.
        """
        candidates = {
            anchor: [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        }
        anchors = [(anchor, nodes) for anchor, nodes in candidates.items() if nodes]
        found = []
        for match in self._extend(anchors, InternalMatch(self.pattern_anchors), node_name_match) if anchors else ():
            if self._is_contained(match.nodes_map) and validate_partition(list(_computed(match))):
                found.append(match)
        return _without_overlaps(found) if self.remove_overlapping_matches else found

    def _extend(self, anchors: list[tuple[Node, list[Node]]], match: InternalMatch, name: str) -> Iterator[InternalMatch]:
        """All matches of the remaining anchors that are consistent with a partial match."""
        if not anchors:
            if all(node in match.nodes_map for node in self.pattern_placeholder_nodes + self.pattern_returning_nodes):
                match.placeholder_nodes = [match.nodes_map[node] for node in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
                yield match
            return
        anchor, candidates = anchors[0]
        for node in candidates:
            extended = copy.copy(match)
            if self._match_nodes(anchor, node, extended, name):
                yield from self._extend(anchors[1:], extended, name)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Adds a node of the pattern and all nodes before it to a match; False if the graph differs."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is node for node in match.nodes_map.values()) or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        pattern_arguments, arguments = _all_arguments(pn, gn)
        matched = arguments is not None and self._match_arguments(pattern_arguments, arguments, match)
        if not matched:
            del match.nodes_map[pn]
        return matched

    def _match_arguments(self, pattern: Any, given: Any, match: InternalMatch) -> bool:
        return len(pattern) == len(given) and all(self._match_argument(p, g, match) for p, g in zip(pattern, given))

    def _match_argument(self, pattern: Any, given: Any, match: InternalMatch) -> bool:
        if isinstance(pattern, Node) and isinstance(given, Node):
            return self._match_nodes(pattern, given, match)
        if isinstance(pattern, (list, tuple)) and isinstance(given, (list, tuple)):
            return self._match_arguments(pattern, given, match)
        return self._match_literals(pattern, given, match) or self.ignore_literals

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        """Whether a constant matches; a placeholder of the pattern matches any."""
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        return not isinstance(gn, Node) and type(gn) is type(pn) and gn == pn

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether two nodes have the same operation, whatever their arguments."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether two attributes are tensors of the same type."""
        if pn.graph.owning_module is None or gn.graph.owning_module is None:
            raise AssertionError("expected graphs with owning modules to compare attributes")
        expected = _get_attr(pn.graph.owning_module, pn.target)
        found = _get_attr(gn.graph.owning_module, gn.target)
        if type(expected) is not type(found):
            return False
        if isinstance(expected, Tensor):
            return True
        raise RuntimeError(f"Unsupported type {expected} when matching attributes")

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Whether only the pattern's results are used outside of the match."""
        inner = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            user in inner for gn, pn in inner.items() if pn not in self.pattern_returning_nodes for user in gn.users
        )


def _all_arguments(pn: Node, gn: Node) -> tuple[list, list | None]:
    """The arguments of both nodes in one order; None if they cannot be compared."""
    if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
        return [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
    return [], None


def _computed(match: InternalMatch) -> Iterator[Node]:
    """The graph's nodes of a match without inputs and the output."""
    return (gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output"))


def _without_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
    """The matches none of whose nodes belong to an earlier one."""
    taken: set[Node] = set()
    kept = []
    for match in matches:
        nodes = set(_computed(match))
        if not nodes & taken:
            kept.append(match)
            taken |= nodes
    return kept
