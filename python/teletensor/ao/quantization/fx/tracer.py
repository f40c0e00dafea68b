"""QuantizationTracer: traces a model down to the modules that are quantized as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import fx, nn
from ...nn.intrinsic.fused import _FusedModule

__all__ = ["QuantizationTracer"]


class QuantizationTracer(fx.Tracer):
    """A tracer that keeps calls of torch.nn's modules, of fused modules, and of modules that the user excepts."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[Callable]):
        super().__init__()
        self.skipped_module_names, self.skipped_module_classes = skipped_module_names, skipped_module_classes

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether the call of a module becomes a node."""
        library = m.__module__.startswith(("teletensor.nn", "torch.nn", "teletensor.ao", "torch.ao"))
        excepted = module_qualified_name in self.skipped_module_names or type(m) in self.skipped_module_classes
        return (library and not isinstance(m, nn.Sequential)) or excepted or isinstance(m, _FusedModule)


def traced(model: nn.Module, names: list[str], classes: list[Any]) -> tuple[fx.GraphModule, dict[str, tuple[str, Any]]]:
    """The model as a graph, and the modules in which its nodes were recorded: (name, class) by the nodes' names."""
    tracer = QuantizationTracer(names, classes)
    graph = tracer.trace(model)
    made = fx.GraphModule(model, graph)
    made.train(model.training)
    return made, dict(tracer.node_name_to_scope)
