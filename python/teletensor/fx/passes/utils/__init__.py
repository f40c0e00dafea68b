"""Matching, splitting and fusing of subgraphs."""

from .common import HolderModule, compare_graphs, lift_subgraph_as_module
