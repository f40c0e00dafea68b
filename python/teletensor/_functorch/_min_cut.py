"""Which values of forward to save for backward: a minimum cut between the inputs and what backward reads.

Each value is an edge whose capacity is its bytes, or infinite if the value cannot be saved. Operators that must not be computed
again are reachable from the source.
"""

from __future__ import annotations

import collections
import operator
from typing import Any

from .._C import Tensor
from ..fx.experimental._symbolic import is_size
from ..fx.graph import Graph
from ..fx.node import Node

# Operators that are too expensive, or would draw other numbers, to be computed again: names and parts of names.
_NOT_AGAIN = (
    "mm", "matmul", "linear", "conv", "attention", "sum", "mean", "norm", "sort", "topk", "rand", "dropout", "bernoulli", "uniform",
    "cumsum", "prod", "amax", "amin", "max", "min", "scatter", "index", "fft", "linalg", "lstm", "gru", "rnn", "cross_entropy", "nll",
    "softmax", "pool", "embedding", "multinomial", "poisson", "normal", "dot", "mv", "ctc", "var", "std", "logsumexp", "cdist",
)  # fmt: skip
_INFINITE = 1 << 62


def _again(node: Node) -> bool:
    name = getattr(node.target, "_opname", getattr(node.target, "__name__", str(node.target)))
    if node.target is operator.getitem:
        return False
    return node.op == "get_attr" or (node.op == "call_function" and not any(part in name for part in _NOT_AGAIN))


def _bytes(node: Node) -> int:
    value = node.meta.get("val")
    if is_size(node):
        return 1
    return max(value.numel() * value.element_size(), 1) if isinstance(value, Tensor) else _INFINITE


def values_to_save(graph: Graph, known: set[Node], depends: set[Node], backward: list[Any]) -> list[Node]:
    """The values to save, in the order of the graph.

    Args:
        known: the nodes that forward computes.
        depends: the nodes that depend on gradients of results, which only backward can compute.
        backward: the results of backward.
    """
    nodes = [n for n in graph.nodes if n.op != "output" and n not in depends]
    network = _Network()
    read = {i for n in graph.nodes if n in depends for i in n.all_input_nodes if i not in depends}
    read |= {n for n in backward if isinstance(n, Node) and n not in depends}
    for node in nodes:
        network.add((node, "in"), (node, "out"), 0 if node.op == "get_attr" else _bytes(node))
        for user in node.users:
            if user not in depends and user.op != "output":
                network.add((node, "out"), (user, "in"), _INFINITE)
        if node.op == "placeholder" or (node in known and not _again(node)):
            network.add("source", (node, "in"), _INFINITE)
        if node in read:
            network.add((node, "out"), "sink", _INFINITE)
    side = network.cut("source", "sink")
    return [n for n in nodes if (n, "in") in side and (n, "out") not in side and n.op != "get_attr"]


class _Network:
    """Capacities of edges; a maximum flow by shortest paths."""

    def __init__(self) -> None:
        self.edges: dict[Any, dict[Any, int]] = collections.defaultdict(dict)

    def add(self, a: Any, b: Any, capacity: int) -> None:
        self.edges[a][b] = self.edges[a].get(b, 0) + capacity
        self.edges[b].setdefault(a, 0)

    def _path(self, source: Any, sink: Any) -> dict[Any, Any]:
        before = {source: None}
        pending = collections.deque([source])
        while pending and sink not in before:
            at = pending.popleft()
            for to, left in self.edges[at].items():
                if left > 0 and to not in before:
                    before[to] = at
                    pending.append(to)
        return before

    def cut(self, source: Any, sink: Any) -> set[Any]:
        """The nodes on the source's side of a minimum cut."""
        while True:
            before = self._path(source, sink)
            if sink not in before:
                return set(before)
            path, at = [], sink
            while before[at] is not None:
                path.append((before[at], at))
                at = before[at]
            flow = min(self.edges[a][b] for a, b in path)
            for a, b in path:
                self.edges[a][b] -= flow
                self.edges[b][a] += flow
