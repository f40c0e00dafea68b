"""CapabilityBasedPartitioner: groups the nodes that a backend supports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions


class Partition:
    """A group of nodes, as the keys of a dict in the graph's order."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        nodes = list(nodes or ())
        self.id = id
        self.nodes: dict[Node, int | None] = dict(zip(nodes, node_orders if node_orders is not None else [None] * len(nodes)))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Removes a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups supported nodes into as few partitions as possible, each of which can be one operation.

    Args:
        graph_module: the module.
        operator_support: decides which nodes are supported.
        allows_single_node_partition: keeps partitions of one computation.
        non_compute_ops: qualified names of functions that do not count as computations.
        allowed_single_node_partition_ops: qualified names of functions that may be a partition alone.
        skip_horizontal_fusion: joins nodes only with the nodes that use them.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        calls = node.op in ("call_function", "call_method", "call_module", "get_attr")
        return calls and self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """Returns the partitions. None depends on its own results through nodes of others."""
        group_of: dict[Node, set[Node]] = {}
        for node in reversed(self.graph_module.graph.nodes):
            if not self._is_node_supported(node):
                continue
            group_of[node] = {node}
            users = [group_of[user] for user in node.users if user in group_of]
            for other in _distinct(users if self.skip_horizontal_fusion else group_of.values()):
                group = group_of[node]
                if other is not group and not _has_cycle(group | other, group_of):
                    group |= other
                    group_of.update(dict.fromkeys(other, group))
        self._keep_results_together(group_of)
        groups = [sorted(group) for group in _distinct(group_of.values()) if group]
        groups = [group for group in groups if self.allows_single_node_partition or self._is_worth_it(group)]
        return [Partition(i, group) for i, group in enumerate(groups)]

    @staticmethod
    def _keep_results_together(group_of: dict[Node, set[Node]]) -> None:
        """Moves the nodes that select one of several results to the group of the node that computes the results."""
        for node in sorted(group_of):
            is_item = node.op == "call_function" and _get_qualified_name(node.target) == "_operator.getitem"
            source = node.all_input_nodes[0] if is_item and node.all_input_nodes else None
            if source is None or group_of.get(source) is group_of[node]:
                continue
            if all(_is_item(user) for user in source.users):
                group_of[node].discard(node)
                if source in group_of:
                    group_of[source].add(node)
                    group_of[node] = group_of[source]
                else:
                    del group_of[node]

    def _is_worth_it(self, group: list[Node]) -> bool:
        """Whether a group has more than one computation, or a computation that may form a group alone."""
        free = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        names = [_get_qualified_name(node.target) for node in group if node.op == "call_function"]
        others = sum(node.op in ("call_module", "call_method") for node in group)
        alone = any(name in self.allowed_single_node_partition_ops for name in names)
        return alone or sum(name not in free for name in names) + others > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replaces each partition by a call of a submodule <prefix><i>."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Removes non_compute_ops at the start and end of partitions, in place."""
        free = set(self.non_compute_ops)
        for partition in partitions:
            for order, linked in ((list(partition.nodes), "all_input_nodes"), (list(partition.nodes)[::-1], "users")):
                for node in order:
                    is_free = node.op == "call_function" and _get_qualified_name(node.target) in free
                    if is_free and not any(other in partition.nodes for other in getattr(node, linked)):
                        partition.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """propose_partitions() and fuse_partitions()."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


def _is_item(node: Node) -> bool:
    return node.op == "call_function" and _get_qualified_name(node.target) == "_operator.getitem"


def _distinct(groups: Iterable[set[Node]]) -> list[set[Node]]:
    """The groups without repetitions, by identity."""
    return list({id(group): group for group in groups}.values())


def _has_cycle(joined: set[Node], group_of: dict[Node, set[Node]]) -> bool:
    """Whether a path leaves the nodes and returns. A path that reaches one node of a group reaches the whole group."""
    pending = [user for node in joined for user in node.users if user not in joined]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        for member in {node} | group_of.get(node, set()):
            if member in joined:
                return True
            seen.add(member)
            pending.extend(member.users)
    return False
