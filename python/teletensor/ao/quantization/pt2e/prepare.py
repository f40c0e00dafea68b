"""Inserts observers or FakeQuantize modules into an annotated graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...._subclasses import FakeTensor
from ....fx import GraphModule, Node
from .._fake_quantize import FixedQParamsFakeQuantize
from .._observer_base import PartialWrapper
from .._observers import FixedQParamsObserver
from ..quantizer.quantizer import (
    Q_ANNOTATION_KEY,
    DerivedQuantizationSpec,
    EdgeOrNode,
    FixedQParamsQuantizationSpec,
    QuantizationSpec,
    SharedQuantizationSpec,
)
from ._derived import DerivedObserverOrFakeQuantize
from ._graph import is_constant, numbered, observer_of, without_observers
from ._sharing import groups, specifications


def _fields(spec: Any, *left_out: str) -> dict[str, Any]:
    return {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec) if f.name not in left_out}


def _class_of(constructor: Any) -> type:
    while isinstance(constructor, PartialWrapper):
        constructor = constructor.p
        constructor = getattr(constructor, "func", constructor)
    return constructor


def _observer(spec: Any, observers: dict[EdgeOrNode, Any], is_qat: bool) -> Any:
    """A new observer or FakeQuantize module for a specification; that of another place for shared ones."""
    if spec is None:
        return None
    if isinstance(spec, SharedQuantizationSpec):
        if spec.edge_or_node not in observers:
            raise AssertionError(f"[prepare_pt2e] a SharedQuantizationSpec refers to {spec.edge_or_node}, which has no observer yet")
        return observers[spec.edge_or_node]
    if isinstance(spec, DerivedQuantizationSpec):
        sources = [observers[place] for place in spec.derived_from]
        return DerivedObserverOrFakeQuantize(obs_or_fqs=sources, **_fields(spec, "derived_from", "is_dynamic"))
    if isinstance(spec, FixedQParamsQuantizationSpec):
        given = {name: value for name, value in _fields(spec).items() if value is not None}
        observer = FixedQParamsObserver.with_args(**given)
        return FixedQParamsFakeQuantize(observer=observer) if is_qat else observer()
    if not isinstance(spec, QuantizationSpec):
        raise TypeError(f"[prepare_pt2e] expected a QuantizationSpec, got {spec!r}")
    constructor = spec.observer_or_fake_quant_ctr
    given = _fields(spec, "observer_or_fake_quant_ctr")
    if "PerChannel" not in _class_of(constructor).__name__ and "PerChannel" not in _observer_class_name(constructor):
        given.pop("ch_axis")
    return constructor.with_args(**given)()


def _observer_class_name(constructor: Any) -> str:
    """The name of the observer's class inside a FakeQuantize; "" if the constructor does not name one."""
    while isinstance(constructor, PartialWrapper):
        keywords = getattr(constructor.p, "keywords", {})
        if "observer" in keywords:
            return _class_of(keywords["observer"]).__name__
        constructor = getattr(constructor.p, "func", None)
    return ""


class _Inserter:
    """Inserts the observers of a model's places."""

    def __init__(self, model: GraphModule, observers: dict[EdgeOrNode, Any]) -> None:
        self.model, self.observers = model, observers
        self.buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}

    def _insert(self, producer: Node, observer: Any) -> Node:
        name = next(n for n in numbered("activation_post_process_") if not hasattr(self.model, n))
        self.model.add_module(name, observer)
        with self.model.graph.inserting_after(producer):
            return self.model.graph.create_node("call_module", name, (producer,), {})

    def _writes_buffer(self, node: Node, producer: Node) -> bool:
        """Whether the producer is a buffer that the node changes in place."""
        schema = getattr(node.target, "_schema", None)
        if schema is None or not node.args or node.args[0] is not producer or not is_constant(producer):
            return False
        return str(schema).split("(")[0].split(".")[0].endswith("_") and str(producer.target) in self.buffers

    def input(self, node: Node, value: Any) -> Any:
        """The argument, with its observer, if it is observed."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.input(node, item) for item in value)
        if not isinstance(value, Node):
            return value
        producer = without_observers(self.model, value)
        observer = self.observers.get((producer, node))
        if observer is None or self._writes_buffer(node, producer) or self.observers.get(producer) is observer:
            return value
        for user in value.users:
            if observer_of(self.model, user) is observer:
                return user
        return self._insert(value, observer)

    def output(self, node: Node) -> None:
        """Inserts the observer of a node's output, which the other users then read."""
        observer = self.observers.get(node)
        if observer is None or not isinstance(node.meta.get("val"), FakeTensor):
            return
        observed = self._insert(node, observer)
        for user in list(node.users):
            if user is not observed:
                user.replace_input_with(node, observed)

    def run(self) -> None:
        """Inserts all observers."""
        for node in list(self.model.graph.nodes):
            if Q_ANNOTATION_KEY not in node.meta:
                continue
            if tensors := [name for name, value in node.kwargs.items() if isinstance(value, Node)]:
                raise AssertionError(f"Kwarg '{tensors[0]}' contained type {Node} which is not supported for annotation.")
            node.args = tuple(self.input(node, value) for value in node.args)
            self.output(node)


def prepare(model: GraphModule, is_qat: bool, obs_or_fq_callback: Any = None) -> GraphModule:
    """Inserts the observers of an annotated model.

    Args:
        obs_or_fq_callback: called with the model and the observers by edge or node, which it may replace.
    """
    specs = specifications(model)
    numbers = groups(specs)
    observers: dict[EdgeOrNode, Any] = {}
    by_group: dict[int, Any] = {}
    for place, spec in specs.items():
        if numbers[place] not in by_group:
            by_group[numbers[place]] = _observer(spec, observers, is_qat)
        observers[place] = by_group[numbers[place]]
    if obs_or_fq_callback is not None:
        obs_or_fq_callback(model, observers)
    _Inserter(model, observers).run()
    model.recompile()
    return model
