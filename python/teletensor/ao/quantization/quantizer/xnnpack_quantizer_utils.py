"""The patterns of operators that XNNPACKQuantizer quantizes: functions that annotate each of them in a graph."""

from __future__ import annotations

from typing import Callable

from .... import _C
from ...._subclasses import FakeTensor
from ....fx import GraphModule, Node
from ._operators import ADD, BATCH_NORM, CONV, CONV_TRANSPOSE, LINEAR, MUL, RELU, is_call, operators
from .quantizer import Q_ANNOTATION_KEY, QuantizationAnnotation, SharedQuantizationSpec
from .utils import (
    QuantizationConfig,
    get_bias_qspec,
    get_input_act_qspec,
    get_output_act_qspec,
    get_weight_qspec,
    is_annotated,
    mark_annotated,
)

# Operators whose result has the scale of their input.
SHARING = operators(
    "relu.default hardtanh.default hardtanh_.default max_pool2d.default mean.default mean.dim permute.default permute_copy.default "
    "squeeze.dim squeeze_copy.dim adaptive_avg_pool2d.default view_copy.default view.default slice_copy.Tensor flatten.using_ints"
)
_POOL, _CAT, _BINARY = operators("adaptive_avg_pool2d.default"), operators("cat.default"), operators("add.Tensor mul.Tensor")
_LARGEST_OBSERVED = 3.4028235e15  # a histogram of larger numbers overflows

Filter = Callable[[Node], bool]
OP_TO_ANNOTATOR: dict[str, Callable[[GraphModule, QuantizationConfig, Filter], None]] = {}


def _layer_annotation(layer: Node, config: QuantizationConfig) -> tuple[dict, list[Node]]:
    """How the input, weight and bias of a layer are quantized, and its weight and bias."""
    specs = {layer.args[0]: get_input_act_qspec(config), layer.args[1]: get_weight_qspec(config)}
    parameters = [layer.args[1]]
    if len(layer.args) > 2 and isinstance(layer.args[2], Node):
        specs[layer.args[2]] = get_bias_qspec(config)
        parameters.append(layer.args[2])
    return specs, parameters


def _chain(last: Node, before: list[tuple]) -> list[Node] | None:
    """The nodes of a chain of operators that ends with a node, first one first. Only the last result has other users."""
    chain = [last]
    for targets in reversed(before):
        node = chain[0].args[0]
        if not is_call(node, targets) or len(node.users) > 1:
            return None
        chain.insert(0, node)
    return chain


def _annotate_layers(pattern: list[tuple], gm: GraphModule, config: QuantizationConfig, accept: Filter) -> None:
    """Annotates chains that start with a layer with weights: its inputs, and the chain's output."""
    for last in gm.graph.nodes:
        if not is_call(last, pattern[-1]) or (chain := _chain(last, pattern[:-1])) is None:
            continue
        specs, parameters = _layer_annotation(chain[0], config)
        if is_annotated([*chain, *parameters] if len(chain) > 1 else [chain[0]]) or not all(map(accept, chain)):
            continue
        output = get_output_act_qspec(config)
        first = QuantizationAnnotation(specs, output if len(chain) == 1 else None, _annotated=True)
        chain[0].meta[Q_ANNOTATION_KEY] = first
        if len(chain) > 1:
            chain[-1].meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(output_qspec=output, _annotated=True)
        mark_annotated([*chain, *parameters])


def _not_quantizable(node: Node, gm: GraphModule) -> bool:
    """Whether an operand is not float32, or is a number that is too large for a histogram."""
    if node.op == "get_attr":
        value = gm
        for name in str(node.target).split("."):
            value = getattr(value, name)
        if value.numel() == 1 and abs(value.item()) > _LARGEST_OBSERVED:
            return True
    value = node.meta.get("val")
    return not isinstance(value, FakeTensor) or value.dtype != _C.float32


def _annotate_binary(pattern: list[tuple], gm: GraphModule, config: QuantizationConfig, accept: Filter) -> None:
    """Annotates sums or products, also with relu after them: the operands and the output."""
    for last in gm.graph.nodes:
        if not is_call(last, pattern[-1]) or (chain := _chain(last, pattern[:-1])) is None:
            continue
        operands = [a for a in chain[0].args[:2] if isinstance(a, Node)]
        if is_annotated(chain) or not all(map(accept, chain)) or any(_not_quantizable(a, gm) for a in operands):
            continue
        output = get_output_act_qspec(config)
        specs = dict.fromkeys(operands, get_input_act_qspec(config))
        chain[0].meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(specs, output if len(chain) == 1 else None, _annotated=True)
        if len(chain) > 1:
            chain[-1].meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(output_qspec=output, _annotated=True)


def _annotate_adaptive_avg_pool2d(gm: GraphModule, config: QuantizationConfig, accept: Filter) -> None:
    """The output has the scale of the input, and the input that of its producer's output if that is quantized."""
    for node in gm.graph.nodes:
        if not is_call(node, _POOL) or is_annotated([node]) or not accept(node):
            continue
        producer = node.args[0]
        found = producer.meta.get(Q_ANNOTATION_KEY)
        quantized = found is not None and found._annotated and found.output_qspec is not None
        spec = SharedQuantizationSpec(producer) if quantized else get_input_act_qspec(config)
        shared = SharedQuantizationSpec((producer, node))
        node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation({producer: spec}, shared, _annotated=True)


def _annotate_cat(gm: GraphModule, config: QuantizationConfig, accept: Filter) -> None:
    """All inputs and the output have the scale of the first input."""
    for node in gm.graph.nodes:
        if not is_call(node, _CAT) or is_annotated([node]) or not accept(node):
            continue
        first, *rest = node.args[0]
        shared = SharedQuantizationSpec((first, node))
        specs = {first: get_input_act_qspec(config)}
        for other in rest:
            specs.setdefault(other, shared)
        node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(specs, shared, _annotated=True)


def _register() -> None:
    layers = {
        "linear": [LINEAR], "linear_relu": [LINEAR, RELU], "conv": [CONV], "conv_relu": [CONV, RELU],
        "conv_transpose_relu": [CONV_TRANSPOSE, RELU], "conv_bn": [CONV, BATCH_NORM], "conv_bn_relu": [CONV, BATCH_NORM, RELU],
        "conv_transpose_bn": [CONV_TRANSPOSE, BATCH_NORM], "conv_transpose_bn_relu": [CONV_TRANSPOSE, BATCH_NORM, RELU],
    }  # fmt: skip
    binaries = {"add": [ADD], "add_relu": [ADD, RELU], "mul": [MUL], "mul_relu": [MUL, RELU]}
    for annotate, patterns in ((_annotate_layers, layers), (_annotate_binary, binaries)):
        for name, pattern in patterns.items():
            OP_TO_ANNOTATOR[name] = lambda gm, config, accept, a=annotate, p=pattern: a(p, gm, config, accept)
    OP_TO_ANNOTATOR["adaptive_avg_pool2d"] = _annotate_adaptive_avg_pool2d
    OP_TO_ANNOTATOR["cat"] = _annotate_cat


_register()


def propagate_annotation(model: GraphModule) -> None:
    """Gives operators such as flatten the scale of their quantized input, if nothing else annotated them."""
    for node in model.graph.nodes:
        if not is_call(node, SHARING) or not node.args or not isinstance(node.args[0], Node):
            continue
        producer = node.args[0]
        found = producer.meta.get(Q_ANNOTATION_KEY)
        if found is None or found.output_qspec is None or is_annotated([node]):
            continue
        shared = SharedQuantizationSpec(producer)
        node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation({producer: shared}, shared, _annotated=True)


def convert_scalars_to_attrs(model: GraphModule) -> GraphModule:
    """Makes buffers of the numbers that tensors are added to or multiplied with."""
    count = 0
    for node in list(model.graph.nodes):
        if not is_call(node, _BINARY):
            continue
        arguments = list(node.args)
        for i, value in enumerate(arguments):
            if isinstance(value, Node) or "val" not in node.meta:
                continue
            while hasattr(model, name := f"_tensor_constant_{count}"):
                count += 1
            tensor = _C.tensor(float(value))
            model.register_buffer(name, tensor)
            with model.graph.inserting_before(node):
                arguments[i] = model.graph.create_node("get_attr", name, (), {})
            arguments[i].meta["val"] = node.meta["val"].fake_mode.from_tensor(tensor)
        node.args = tuple(arguments)
    model.recompile()
    return model
