"""Sets of nodes that can be fused."""

from __future__ import annotations

from ...node import Node


def validate_partition(partition: list[Node]) -> bool:
    """Whether the nodes can be fused: no path leaves the set and re-enters it."""
    inside = set(partition)
    pending = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            pending.extend(node.users)
    return True


validate_partition.__module__ = "teletensor.fx.passes.utils.fuser_utils"
