"""What quantizers share: configurations of operators, annotation of nodes, and filters by module."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, NamedTuple

from .... import _C
from .... import _quantized_names as q
from ....fx import Node
from .quantizer import Q_ANNOTATION_KEY, QuantizationAnnotation, QuantizationSpec

OperatorPatternType = list[Callable]


@dataclasses.dataclass(eq=True, frozen=True)
class QuantizationConfig:
    """How an operator's input, output, weight and bias are quantized; None: not at all."""

    input_activation: QuantizationSpec | None
    output_activation: QuantizationSpec | None
    weight: QuantizationSpec | None
    bias: QuantizationSpec | None
    is_qat: bool = False


class OperatorConfig(NamedTuple):
    """A configuration with the patterns of operators that it applies to."""

    config: QuantizationConfig
    operators: list[OperatorPatternType]


def _activation(spec: QuantizationSpec | None) -> QuantizationSpec | None:
    if spec is not None and spec.qscheme not in (q.per_tensor_affine, q.per_tensor_symmetric):
        raise AssertionError(f"expected activations quantized per tensor, got {spec.qscheme}")
    return spec


def get_input_act_qspec(quantization_config: QuantizationConfig | None) -> QuantizationSpec | None:
    """How inputs are quantized."""
    return None if quantization_config is None else _activation(quantization_config.input_activation)


def get_output_act_qspec(quantization_config: QuantizationConfig | None) -> QuantizationSpec | None:
    """How outputs are quantized."""
    return None if quantization_config is None else _activation(quantization_config.output_activation)


def get_weight_qspec(quantization_config: QuantizationConfig | None) -> QuantizationSpec | None:
    """How weights are quantized; ValueError if not symmetrically."""
    if quantization_config is None or (spec := quantization_config.weight) is None:
        return None
    if spec.qscheme not in (q.per_tensor_symmetric, q.per_channel_symmetric, None):
        raise ValueError(f"Unsupported quantization_spec {spec} for weight")
    return spec


def get_bias_qspec(quantization_config: QuantizationConfig | None) -> QuantizationSpec | None:
    """How biases are represented: float32 or not quantized."""
    if quantization_config is None or (spec := quantization_config.bias) is None:
        return None
    if spec.dtype != _C.float32:
        raise AssertionError("Only float dtype for bias is supported for bias right now")
    return spec


def _annotation(node: Node) -> QuantizationAnnotation:
    return node.meta.setdefault(Q_ANNOTATION_KEY, QuantizationAnnotation())


def annotate_input_qspec_map(node: Node, input_node: Node, qspec: Any) -> None:
    """Sets how an input of a node is quantized."""
    _annotation(node).input_qspec_map[input_node] = qspec


def annotate_output_qspec(node: Node, qspec: Any) -> None:
    """Sets how the output of a node is quantized."""
    _annotation(node).output_qspec = qspec


def is_annotated(nodes: list[Node]) -> bool:
    """Whether a quantizer has decided about any of the nodes."""
    return any(Q_ANNOTATION_KEY in n.meta and n.meta[Q_ANNOTATION_KEY]._annotated for n in nodes)


def is_valid_annotation(annotation: QuantizationAnnotation | None) -> bool:
    """Whether an annotation describes any tensor."""
    return annotation is not None and bool(annotation.input_qspec_map or annotation.output_qspec is not None)


def mark_annotated(nodes: list[Node]) -> None:
    """Marks nodes as decided, so that later patterns do not contain them."""
    for node in nodes:
        _annotation(node)._annotated = True


def get_module_name_filter(module_name: str) -> Callable[[Node], bool]:
    """A function that returns whether a node was computed in the module of this name or in one of its submodules."""

    def module_name_filter(n: Node) -> bool:
        return module_name in [path.removeprefix("L['self'].") for path, _ in n.meta.get("nn_module_stack", {}).values()]

    return module_name_filter


def get_module_type_filter(tp: Callable) -> Callable[[Node], bool]:
    """A function that returns whether a node was computed in a module of this class."""
    name = f"{tp.__module__}.{tp.__qualname__}"

    def module_type_filter(n: Node) -> bool:
        return any(kind is tp or kind == name for _, kind in n.meta.get("nn_module_stack", {}).values())

    return module_type_filter
