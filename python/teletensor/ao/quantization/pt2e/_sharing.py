"""Which places of an annotated graph use one observer: those that specifications share, and those that see the same tensor."""

from __future__ import annotations

from typing import Any

from ....fx import GraphModule
from ..quantizer.quantizer import Q_ANNOTATION_KEY, EdgeOrNode, QuantizationSpecBase, SharedQuantizationSpec

_COMPARED = ("dtype", "is_dynamic", "quant_min", "quant_max", "qscheme", "ch_axis", "scale", "zero_point")


def specifications(model: GraphModule) -> dict[EdgeOrNode, QuantizationSpecBase | None]:
    """The specifications of a graph's annotations, by edge (producer, node) or node, in the graph's order."""
    found: dict[EdgeOrNode, QuantizationSpecBase | None] = {}
    for node in model.graph.nodes:
        annotation = node.meta.get(Q_ANNOTATION_KEY)
        if annotation is None:
            continue
        for producer, spec in annotation.input_qspec_map.items():
            found[producer, node] = spec
        if annotation.output_qspec is not None:
            found[node] = annotation.output_qspec
    return found


class _Groups:
    """Disjoint sets of edges and nodes; each set has a root."""

    def __init__(self, specs: dict[EdgeOrNode, Any]) -> None:
        self.specs = specs
        self.parents: dict[EdgeOrNode, EdgeOrNode] = {key: key for key in specs}

    def root(self, place: EdgeOrNode) -> EdgeOrNode:
        """The root of a place's set."""
        if place not in self.parents:
            raise ValueError(f"[prepare_pt2e] a SharedQuantizationSpec refers to {place}, which has no quantization annotation")
        while self.parents[place] != place:
            self.parents[place] = self.parents[self.parents[place]]
            place = self.parents[place]
        return place

    def unite(self, parent: EdgeOrNode, child: EdgeOrNode) -> None:
        """Unites two sets. The parent's root becomes the root, unless it shares with the child's root itself."""
        above, below = self.root(parent), self.root(child)
        spec = self.specs[above]
        if isinstance(spec, SharedQuantizationSpec) and spec.edge_or_node == below:
            self.parents[above] = below
        else:
            self.parents[below] = above

    def root_spec(self, spec: Any) -> Any:
        """The specification that a shared one refers to, over any number of steps."""
        seen = []
        while isinstance(spec, SharedQuantizationSpec):
            root = self.root(spec.edge_or_node)
            if root in seen:
                raise ValueError(f"[prepare_pt2e] SharedQuantizationSpecs refer to each other in a circle at {root}")
            seen.append(root)
            spec = self.specs[root]
        return spec

    def unite_if_alike(self, edge: EdgeOrNode, spec: Any, other: EdgeOrNode) -> None:
        """Unites an edge with another place of the same tensor if both are quantized alike."""
        found = self.root_spec(self.specs.get(other))
        missing = object()
        if found is not None and all(getattr(found, n, missing) == getattr(spec, n, missing) or
                                     (not hasattr(found, n) and not hasattr(spec, n)) for n in _COMPARED):  # fmt: skip
            self.unite(other, edge)


def groups(specs: dict[EdgeOrNode, QuantizationSpecBase | None]) -> dict[EdgeOrNode, int]:
    """The number of each place's group; the places of a group use one observer."""
    sets = _Groups(specs)
    for place, spec in specs.items():
        if isinstance(place, tuple):
            producer, node = place
            if node.meta[Q_ANNOTATION_KEY].allow_implicit_sharing:
                root = sets.root_spec(spec)
                for user in producer.users:  # before the producer's output: the reverse order could form a circle
                    if user is not node:
                        sets.unite_if_alike(place, root, (producer, user))
                sets.unite_if_alike(place, root, producer)
        if isinstance(spec, SharedQuantizationSpec):
            sets.unite(spec.edge_or_node, place)
    numbers: dict[EdgeOrNode, int] = {}
    for place in specs:
        numbers.setdefault(sets.root(place), len(set(numbers.values())))
        numbers[place] = numbers[sets.root(place)]
    return numbers
