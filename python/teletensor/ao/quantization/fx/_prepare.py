"""Observers in graphs."""

from __future__ import annotations

from typing import Any

from .... import fx, nn
from ..backend_config import BackendConfig
from ..fuse_modules import _get_module, _set_module
from ..qconfig_mapping import QConfigMapping
from ._fuse import fuse, kind_of
from ._plan import Step, configurations, float_nodes, steps
from .custom_config import PrepareCustomConfig
from .tracer import traced


class _Inserter:
    """Adds observers to a graph.

    Attributes:
        observers: the nodes of observers by the node that they observe.
    """

    def __init__(self, model: fx.GraphModule, floats: set[str]):
        self.model, self.floats = model, floats
        self.observers: dict[fx.Node, fx.Node] = {}
        self.count = 0

    def add(self, value: fx.Node, name: str | None, make: Any) -> fx.Node:
        """An observer of a node: a new one, or another call of one that exists."""
        if name is None:
            name = f"activation_post_process_{self.count}"
            self.count += 1
            device = next((p.device for p in self.model.parameters()), None)
            observer = make()
            self.model.add_module(name, observer if device is None else observer.to(device))
        with self.model.graph.inserting_after(value):
            node = self.model.graph.call_module(name, (value,))
        self.floats.add(node.name)
        return node

    def observed(self, value: Any, make: Any) -> Any:
        """A tensor argument's observer; other arguments unchanged."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.observed(v, make) for v in value)
        if not isinstance(value, fx.Node) or value.name not in self.floats:
            return value
        if self.is_observer(value):
            return value
        if value not in self.observers:
            self.observers[value] = self.add(value, None, make)
        return self.observers[value]

    def is_observer(self, node: fx.Node) -> bool:
        """Whether a node is the call of an observer that was added."""
        return node.op == "call_module" and str(node.target).startswith("activation_post_process_")

    def inputs(self, node: fx.Node, step: Step) -> None:
        """Observes the arguments of a node that are quantized."""
        for i, value in enumerate(node.args):
            if i == step.weight:
                if isinstance(value, fx.Node):
                    node.update_arg(i, self.add(value, None, step.qconfig.weight))
            elif step.weight is None or i == 0:
                if step.dynamic:
                    if isinstance(value, fx.Node) and value.name in self.floats:
                        node.update_arg(i, self.add(value, None, step.qconfig.activation))
                else:
                    node.update_arg(i, self.observed(value, step.qconfig.activation))
        for key, value in node.kwargs.items():
            if key in ("input", "tensors", "other") and not step.dynamic:
                node.update_kwarg(key, self.observed(value, step.qconfig.activation))

    def output(self, node: fx.Node, first: Any, step: Step) -> None:
        """Observes the result of a node, by its input's observer if it shares the input's scale."""
        users = list(node.users)
        name = None
        if step.shared:
            value = first[0] if isinstance(first, (list, tuple)) else first
            name = value.target if isinstance(value, fx.Node) and self.is_observer(value) else None
        made = self.add(node, name, step.qconfig.activation)
        for user in users:
            user.replace_input_with(node, made)


def _trained(model: fx.GraphModule, qconfigs: dict[str, Any], backend: BackendConfig) -> None:
    """Replaces modules by those that round their weights, in place."""
    table = {c.pattern: c.qat_module for c in backend.configs if c.qat_module is not None}
    for node in model.graph.nodes:
        kind = kind_of(node, model)
        if node.op == "call_module" and kind in table and qconfigs.get(node.name) is not None:
            module = _get_module(model, node.target)
            for part in (module, *module.children()):
                part.qconfig = qconfigs[node.name]
            _set_module(model, node.target, table[kind].from_float(module))


def prepare(
    model: nn.Module, mapping: QConfigMapping, is_qat: bool, example_inputs: tuple, custom: PrepareCustomConfig, backend: BackendConfig
) -> fx.GraphModule:
    """The model as a graph with observers."""
    graph_module, scopes = traced(model, custom.non_traceable_module_names, custom.non_traceable_module_classes)
    kept = {name: getattr(model, name) for name in custom.preserved_attributes}
    fuse(graph_module, is_qat, backend)
    floats = float_nodes(graph_module, example_inputs)
    qconfigs = configurations(graph_module, scopes, _with_fused(mapping, backend))
    if is_qat:
        _trained(graph_module, qconfigs, backend)
    planned = steps(graph_module, qconfigs, backend, floats)
    inserter = _Inserter(graph_module, floats)
    inputs = [n for n in graph_module.graph.nodes if n.op == "placeholder"]
    for i in custom.input_quantized_indexes:
        inserter.observers[inputs[i]] = inputs[i]  # quantized already: not observed
    nodes = {n.name: n for n in graph_module.graph.nodes}
    for last, step in planned.items():
        root = nodes[step.root]
        if root.op == "call_module":
            module = _get_module(graph_module, root.target)
            for part in (module, *module.children()):
                part.qconfig = step.qconfig
        if not step.weight_only:
            inserter.inputs(root, step)
        if not step.dynamic and not step.weight_only:
            inserter.output(nodes[last], root.args[0] if root.args else None, step)
    graph_module.graph.lint()
    graph_module.recompile()
    graph_module.meta["quantization"] = {
        "steps": planned, "inputs": list(custom.input_quantized_indexes), "outputs": list(custom.output_quantized_indexes),
    }  # fmt: skip
    for name, value in kept.items():
        setattr(graph_module, name, value)
    return graph_module


def _with_fused(mapping: QConfigMapping, backend: BackendConfig) -> QConfigMapping:
    """The mapping with the classes of fused modules, which have the configuration of their first module's class."""
    made = QConfigMapping.from_dict(mapping.to_dict())
    for config in backend.configs:
        if config.fused_module is not None and isinstance(config.pattern, tuple) and config.pattern[0] in made.object_type_qconfigs:
            made.object_type_qconfigs.setdefault(config.fused_module, made.object_type_qconfigs[config.pattern[0]])
    return made
