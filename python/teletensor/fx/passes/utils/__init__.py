"""Matching, splitting and fusing of subgraphs; each module is imported at its first use."""

from ...._lazy import lazy_attributes

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]
__getattr__, __dir__ = lazy_attributes(
    globals(), ("common", "fuser_utils", "matcher_utils", "matcher_with_name_node_map_utils", "source_matcher_utils"),
    {"common": " ".join(__all__)},
)  # fmt: skip
