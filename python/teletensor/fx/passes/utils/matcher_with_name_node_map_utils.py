"""A matcher whose pattern names some of its nodes."""

from __future__ import annotations

from ....utils._pytree import tree_flatten, tree_unflatten
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Removes the dict of named nodes from a pattern's results; returns it."""
    output = gm.graph.output_node()
    results = tree_unflatten(output.args[0], gm._out_spec)
    if not isinstance(results, tuple) or len(results) < 2 or not isinstance(results[-1], dict):
        raise AssertionError(f"expected a pattern that returns a tuple whose last element is a dict of nodes, got {results}")
    *values, names = results
    flat, out_spec = tree_flatten(values)
    output.args = (flat,)
    codegen = gm.graph._codegen
    codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds subgraphs; the pattern returns (results, {name: node}), and each match maps the names to the graph's nodes.

    Args:
        pattern_gm: the pattern, traced so that its results are flattened; it is changed.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals: see SubgraphMatcher.
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches in a graph with their named nodes."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update({name: match.nodes_map[node] for name, node in self.name_node_map.items()})
        return matches
