"""ComposableQuantizer: several quantizers, one after the other."""

from __future__ import annotations

from ....fx import GraphModule, Node
from .quantizer import Q_ANNOTATION_KEY, QuantizationAnnotation, Quantizer

__all__ = ["ComposableQuantizer"]


class ComposableQuantizer(Quantizer):
    """Annotates a model with several quantizers in the given order.

    Raises:
        RuntimeError: from annotate(): a quantizer replaced or removed an annotation of an earlier one.
    """

    def __init__(self, quantizers: list[Quantizer]):
        super().__init__()
        self.quantizers = quantizers
        self._graph_annotations: dict[Node, QuantizationAnnotation] = {}

    def _record_and_validate_annotations(self, gm: GraphModule, quantizer: Quantizer) -> None:
        for node in gm.graph.nodes:
            found, earlier = node.meta.get(Q_ANNOTATION_KEY), self._graph_annotations.get(node)
            if earlier is not None and found is not earlier:
                done = "removed" if found is None else "changed"
                raise RuntimeError(f"Quantizer {type(quantizer).__name__} has {done} annotations on node {node}")
            if found is not None:
                self._graph_annotations[node] = found

    def annotate(self, model: GraphModule) -> GraphModule:
        for quantizer in self.quantizers:
            quantizer.annotate(model)
            self._record_and_validate_annotations(model, quantizer)
        return model

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        for quantizer in self.quantizers:
            model = quantizer.transform_for_annotation(model)
        return model

    def validate(self, model: GraphModule) -> None:
        """Every quantizer validates the model."""
        for quantizer in self.quantizers:
            quantizer.validate(model)
