"""X86InductorQuantizer: uint8 activations and int8 weights per channel, as x86 CPUs with VNNI multiply them."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Iterator
from typing import Any, Callable

from .... import _C, ops
from .... import _quantized_names as q
from ...._subclasses import FakeTensor
from ....fx import GraphModule, Node
from ....nn import AdaptiveAvgPool2d, AvgPool2d, Conv2d, Linear, MaxPool2d
from ....nn import functional as F
from .._observers import PlaceholderObserver
from ._operators import ADD, BATCH_NORM, LINEAR, RELU, is_call, operators
from .quantizer import Q_ANNOTATION_KEY, QuantizationAnnotation, QuantizationSpec, Quantizer, SharedQuantizationSpec
from .utils import (
    QuantizationConfig,
    get_bias_qspec,
    get_input_act_qspec,
    get_module_name_filter,
    get_output_act_qspec,
    get_weight_qspec,
    is_annotated,
    mark_annotated,
)
from .xnnpack_quantizer import activation_observer, weight_observer

__all__ = ["X86InductorQuantizer", "get_default_x86_inductor_quantization_config", "get_x86_inductor_linear_dynamic_fp16_config"]

aten = ops.aten
CONV1D, CONV2D = operators("conv1d.default"), operators("conv2d.default")
# Operators that compute with integers, and whose result has the scale of their input.
int8_in_int8_out_ops = {
    aten.max_pool2d.default, aten.cat.default, aten.avg_pool2d.default, aten.adaptive_avg_pool2d.default, aten.flatten.using_ints,
}  # fmt: skip
propagation_quantizable_ops = int8_in_int8_out_ops
default_quantizable_ops = propagation_quantizable_ops | {*CONV1D, *CONV2D, *LINEAR, aten.mul.Tensor}
quantizable_ops = default_quantizable_ops | {aten.matmul.default}

_CONV_UNARY = operators(
    "relu.default relu_.default hardtanh.default hardtanh_.default hardswish.default hardswish_.default relu6.default relu6_.default "
    "silu.default silu_.default"
)
_LINEAR_UNARY = operators("relu.default relu_.default leaky_relu.default leaky_relu_.default tanh.default gelu.default")
_BY_FUNCTION = operators("relu.default relu_.default hardtanh.default hardtanh_.default")  # also without a module: F.relu(x)

FilterFn = Callable[[list[Node]], bool]


@dataclasses.dataclass
class _X86InductorQuantizationAnnotation(QuantizationAnnotation):
    """An annotation that also records whether the node is the output of a quantized pattern."""

    _is_output_of_quantized_pattern: bool = False


@functools.lru_cache
def get_default_x86_inductor_quantization_config(
    is_qat: bool = False, is_dynamic: bool = False, reduce_range: bool = False
) -> QuantizationConfig:
    """uint8 activations per tensor and int8 weights per output channel.

    Args:
        is_qat: for prepare_qat_pt2e: FakeQuantize modules instead of observers.
        is_dynamic: the scales of activations are computed from each input when the model runs.
        reduce_range: activations in 7 bits, for CPUs without VNNI.
    """
    activation = QuantizationSpec(
        dtype=_C.uint8, quant_min=0, quant_max=127 if reduce_range else 255, qscheme=q.per_tensor_affine, is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=activation_observer(is_qat, is_dynamic),
    )  # fmt: skip
    weight = QuantizationSpec(
        dtype=_C.int8, quant_min=-128, quant_max=127, qscheme=q.per_channel_symmetric, ch_axis=0, is_dynamic=False,
        observer_or_fake_quant_ctr=weight_observer(is_qat, is_per_channel=True),
    )  # fmt: skip
    return QuantizationConfig(activation, activation, weight, None, is_qat)


@functools.lru_cache
def get_x86_inductor_linear_dynamic_fp16_config() -> QuantizationConfig:
    """Weights of linear layers in float16."""
    weight = QuantizationSpec(dtype=_C.float16, observer_or_fake_quant_ctr=PlaceholderObserver)
    return QuantizationConfig(None, None, weight, None)


_OPERATORS: dict[Any, Any] = {
    F.conv1d: aten.conv1d.default, Conv2d: aten.conv2d.default, F.conv2d: aten.conv2d.default, Linear: aten.linear.default,
    F.linear: aten.linear.default, MaxPool2d: aten.max_pool2d.default, F.max_pool2d: aten.max_pool2d.default,
    _C.torch.cat: aten.cat.default, AvgPool2d: aten.avg_pool2d.default, F.avg_pool2d: aten.avg_pool2d.default,
    AdaptiveAvgPool2d: aten.adaptive_avg_pool2d.default, F.adaptive_avg_pool2d: aten.adaptive_avg_pool2d.default,
    _C.torch.flatten: aten.flatten.using_ints, _C.torch.matmul: aten.matmul.default, _C.torch.mul: aten.mul.Tensor,
}  # fmt: skip


def exactly_one(nodes: list[Node], operator_types: Any, description: Any) -> bool:
    """Whether exactly one node calls one of some operators. Raises NotImplementedError for several."""
    count = sum(n.target in operator_types for n in nodes)
    if count > 1:
        raise NotImplementedError(f"Several nodes within a single pattern are {description}.")
    return count == 1


def _global_filter(nodes: list[Node]) -> bool:
    """Whether exactly one node is an operator that is quantized by default."""
    return exactly_one(nodes, default_quantizable_ops, "default quantizable operations")


def _operator_filter(operator_type: Any) -> FilterFn:
    return lambda nodes: exactly_one(nodes, (operator_type,), operator_type)


def _name_filter(module_name: str) -> FilterFn:
    accept = get_module_name_filter(module_name)
    return lambda nodes: all(map(accept, nodes))


def _in_module_or_function(node: Node) -> bool:
    """Whether an activation is computed by a module such as GELU; relu and hardtanh also by functions."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    name = node.target._schema.name.partition("::")[2].split(".")[0].rstrip("_").replace("_", "") if stack else ""
    kind = stack[-1][1] if stack else ""
    kind = kind if isinstance(kind, str) else kind.__name__
    return node.target in _BY_FUNCTION or kind.rpartition(".")[2].lower() == name


def _is_output(node: Any) -> bool:
    """Whether a node is the output of a quantized pattern."""
    return is_annotated([node]) and getattr(node.meta[Q_ANNOTATION_KEY], "_is_output_of_quantized_pattern", False)


@dataclasses.dataclass
class _Pattern:
    """A layer, perhaps its batch norm, perhaps a sum with another tensor, perhaps an activation."""

    layer: Node
    norm: Node | None
    add: Node | None
    unary: Node | None

    @property
    def nodes(self) -> list[Node]:
        return [n for n in (self.unary, self.add, self.norm, self.layer) if n is not None]

    @property
    def other(self) -> Any:
        """What is added."""
        before = self.norm or self.layer
        return next((a for a in self.add.args[:2] if a is not before), None)


def _patterns(gm: GraphModule, layers: tuple, norm: bool, add: bool, unary: tuple) -> Iterator[_Pattern]:
    """The patterns of a graph in the graph's order. Results inside a pattern have one user."""
    for layer in gm.graph.nodes:
        if not is_call(layer, layers):
            continue
        found, last = [], layer
        for targets in (BATCH_NORM if norm else None, ADD if add else None, unary or None):
            if targets is None:
                found.append(None)
                continue
            user = next(iter(last.users), None)
            if len(last.users) != 1 or not is_call(user, targets):
                break
            if targets is unary and not _in_module_or_function(user):
                break
            if targets is ADD and not all(isinstance(a, Node) for a in user.args[:2]):
                break
            found.append(user)
            last = user
        else:
            yield _Pattern(layer, *found)


class X86InductorQuantizer(Quantizer):
    """Quantizes convolutions and linear layers with what follows them, and the pooling, concatenation and flatten after these.

    Configurations of modules by name precede those of operators, and both precede the global one; None: not quantized.
    """

    module_function_to_aten_operator_type = _OPERATORS
    _stage: type[_Stage]
    _global_filter = staticmethod(_global_filter)
    _sharing = frozenset(int8_in_int8_out_ops)

    def __init__(self) -> None:
        super().__init__()
        self.global_config: QuantizationConfig | None = None
        self.operator_type_qconfig: dict[Any, QuantizationConfig | None] = {}
        self.module_name_qconfig: dict[str, QuantizationConfig | None] = {}

    def _skips(self, what: str, config: QuantizationConfig | None) -> bool:
        """Whether a configuration cannot be combined with the earlier ones: QAT with PTQ, static with dynamic."""
        earlier = [*self.module_name_qconfig.values(), *self.operator_type_qconfig.values(), self.global_config]
        for other in filter(None, earlier if config is not None else ()):
            if other.is_qat != config.is_qat:
                warnings.warn("Mixed QAT and Non-QAT quantization config is not supported.", stacklevel=3)
            elif other.input_activation and config.input_activation and (
                other.input_activation.is_dynamic != config.input_activation.is_dynamic
            ):  # fmt: skip
                warnings.warn("Mixed dynamic and static quantization config is not supported.", stacklevel=3)
            else:
                continue
            warnings.warn(f"Skip the quantization config for {what}.", stacklevel=3)
            return True
        return False

    def set_global(self, quantization_config: QuantizationConfig) -> X86InductorQuantizer:
        """Sets the configuration of all operators without another one. Returns the quantizer."""
        if not self._skips("global", quantization_config):
            self.global_config = quantization_config
        return self

    def get_global_quantization_config(self) -> QuantizationConfig | None:
        """The global configuration."""
        if self.global_config is None:
            warnings.warn(f"The global_config for {type(self).__name__} is not set; use set_global.", stacklevel=2)
        return self.global_config

    def _set_operator(self, kind: Any, quantization_config: QuantizationConfig | None) -> X86InductorQuantizer:
        operator_type = self.module_function_to_aten_operator_type.get(kind)
        if operator_type is None:
            warnings.warn(f"Unable to customize quantization config for {kind} by {type(self).__name__}.", stacklevel=3)
        elif not self._skips(str(kind), quantization_config):
            self.operator_type_qconfig[operator_type] = quantization_config
        return self

    def set_function_type_qconfig(self, function_type: Callable, quantization_config: QuantizationConfig | None) -> X86InductorQuantizer:
        """Sets the configuration of a function, such as torch.matmul. Returns the quantizer."""
        return self._set_operator(function_type, quantization_config)

    def set_module_type_qconfig(self, module_type: Any, quantization_config: QuantizationConfig | None) -> X86InductorQuantizer:
        """Sets the configuration of a class of modules, such as nn.Linear. Returns the quantizer."""
        return self._set_operator(module_type, quantization_config)

    def set_module_name_qconfig(self, module_name: str, quantization_config: QuantizationConfig | None) -> X86InductorQuantizer:
        """Sets the configuration of a module, such as "blocks.sub". Returns the quantizer."""
        if not self._skips(module_name, quantization_config):
            self.module_name_qconfig[module_name] = quantization_config
        return self

    def annotate(self, model: GraphModule) -> GraphModule:
        stages = [(c, _name_filter(name)) for name, c in self.module_name_qconfig.items()]
        stages += [(c, _operator_filter(kind)) for kind, c in self.operator_type_qconfig.items()]
        if self.global_config is not None:
            stages.append((self.global_config, self._global_filter))
        for config, accept in stages:
            self._stage(model, config, accept).run()
        for node in model.graph.nodes:  # the outputs of pooling and others have the scale of their input
            if node.target in self._sharing and is_annotated([node]) and _is_output(node):
                first = node.all_input_nodes[0]
                node.meta[Q_ANNOTATION_KEY].output_qspec = SharedQuantizationSpec((first, node))
        return model

    def validate(self, model: GraphModule) -> None:
        """Every graph is valid."""


class _Stage:
    """Annotates the nodes that one configuration applies to."""

    def __init__(self, model: GraphModule, config: QuantizationConfig | None, accept: FilterFn) -> None:
        self.model, self.config, self.accept = model, config, accept

    def run(self) -> None:
        """Annotates layers, longest patterns first, then products, then what follows quantized operators."""
        if self.config is None or self.config.is_qat:
            for add, unary in ((True, RELU), (True, ()), (False, _CONV_UNARY), (False, ())):
                self._layers(CONV2D, add, unary, norm=True)
        self._layers(CONV2D, True, RELU)
        self._layers(CONV2D, True, ())
        self._layers(CONV2D, False, _CONV_UNARY)
        self._layers(CONV1D, False, RELU)
        self._layers(CONV2D, False, ())
        self._layers(LINEAR, True, RELU)
        self._layers(LINEAR, True, ())
        self._layers(LINEAR, False, _LINEAR_UNARY)
        self._layers(LINEAR, False, ())
        for node in self.model.graph.nodes:
            if is_call(node, (aten.matmul.default, aten.mul.Tensor)):
                self._product(node)
        for node in self.model.graph.nodes:
            if node.op == "call_function" and node.target in propagation_quantizable_ops:
                self._propagate(node)

    def _free(self, nodes: list[Node]) -> bool:
        return not is_annotated(nodes) and self.accept(nodes)

    def _set(self, node: Node, inputs: dict | None = None, is_output: bool = False, output: Any = None) -> None:
        """Annotates a node; without a configuration: as not quantized."""
        if self.config is None:
            inputs, is_output, output = {}, False, None
        node.meta[Q_ANNOTATION_KEY] = _X86InductorQuantizationAnnotation(
            inputs or {}, output, _annotated=True, _is_output_of_quantized_pattern=is_output
        )

    def _layers(self, layers: tuple, add: bool, unary: tuple, norm: bool = False) -> None:
        activation = get_input_act_qspec(self.config)
        for found in _patterns(self.model, layers, norm, add, unary):
            nodes = found.nodes
            if not self._free(nodes):
                continue
            layer = found.layer
            specs: dict = {layer.args[0]: activation, layer.args[1]: get_weight_qspec(self.config)}
            if len(layer.args) > 2 and isinstance(layer.args[2], Node):
                specs[layer.args[2]] = get_bias_qspec(self.config)
            self._set(layer, specs, is_output=len(nodes) == 1)
            output = get_output_act_qspec(self.config) if norm else None
            if found.add is not None:  # what is added to a linear layer's result is not quantized, for accuracy
                specs = {found.other: activation} if layers is not LINEAR else {}
                last = found.unary is None
                self._set(found.add, specs, last, output if last else None)
            if found.unary is not None:
                self._set(found.unary, None, True, output)
            if norm and found.add is None and found.unary is None:
                self._set(found.norm, None, True, output)
            elif norm:
                mark_annotated([found.norm])

    def _product(self, node: Node) -> None:
        if not self._free([node]):
            return
        if self.config is not None and node.target == aten.mul.Tensor:
            values = [a.meta.get("val") if isinstance(a, Node) else None for a in node.args]
            if not all(isinstance(v, FakeTensor) for v in values) or values[0].shape != values[1].shape:
                return
        self._set(node, dict.fromkeys(node.args, get_input_act_qspec(self.config)), True)

    def _propagate(self, node: Node) -> None:
        if not self._free([node]):
            return
        if self.config is None:
            self._set(node)
            return
        inputs = node.all_input_nodes if node.target == aten.cat.default else node.all_input_nodes[:1]
        if node.target == aten.flatten.using_ints and node.users and not any(u.target in quantizable_ops for u in node.users):
            return
        if not all(map(_is_output, inputs)):
            return
        specs: dict = {inputs[0]: get_input_act_qspec(self.config)}
        for other in inputs[1:]:
            specs[other] = SharedQuantizationSpec((inputs[0], node))
        self._set(node, specs, True)


X86InductorQuantizer._stage = _Stage
