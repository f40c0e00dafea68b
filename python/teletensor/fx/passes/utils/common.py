"""Subgraphs as modules, and comparison of graphs."""

from __future__ import annotations

from .... import nn
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "lift_subgraph_as_module", "compare_graphs"]


class HolderModule(nn.Module):
    """A module of given submodules."""

    def __init__(self, d: dict[str, nn.Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module of a subgraph, with the attributes of `gm` that the subgraph reads.

    Returns:
        The module, and the new qualified name (below comp_name) of each attribute.
    """
    holder, names = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *path, leaf = node.target.split(".")
        place, original = holder, gm
        for part in path:
            if not hasattr(place, part):
                place.add_module(part, HolderModule({}))
            place, original = getattr(place, part), getattr(original, part)
        names[node.target] = f"{comp_name}.{node.target}"
        setattr(place, leaf, getattr(original, leaf))
    return GraphModule(holder, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs are equal but for the names of their nodes."""
    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
