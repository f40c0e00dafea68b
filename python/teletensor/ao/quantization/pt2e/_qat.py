"""Convolutions followed by batch norms during quantization-aware training: the quantized weight contains the batch norm's scale."""

from __future__ import annotations

from typing import Any

from .... import _C, ops
from ....fx import GraphModule, Node
from ..quantizer._operators import BATCH_NORM, CONV, CONV_TRANSPOSE, is_call
from ..quantizer.quantizer import Q_ANNOTATION_KEY, DerivedQuantizationSpec, SharedQuantizationSpec
from ._conv_bn import fold_batch_norm
from ._graph import argument, constant, is_constant, numbered, set_parameter, uses

aten = ops.aten


def _move_annotations(model: GraphModule, layer: Node, old: Node, new: Node) -> None:
    """Makes annotations that describe the input `old` of a layer describe its new input."""
    specs = layer.meta[Q_ANNOTATION_KEY].input_qspec_map
    moved = {new if k is old else k: v for k, v in specs.items()}
    specs.clear()
    specs.update(moved)
    for node in model.graph.nodes:
        annotation = node.meta.get(Q_ANNOTATION_KEY)
        if annotation is None:
            continue

        def renamed(spec: Any) -> Any:
            if isinstance(spec, SharedQuantizationSpec) and spec.edge_or_node == (old, layer):
                return SharedQuantizationSpec((new, layer))
            if isinstance(spec, DerivedQuantizationSpec):
                places = [(new, layer) if p == (old, layer) else p for p in spec.derived_from]
                return DerivedQuantizationSpec(places, *(getattr(spec, n) for n in (
                    "derive_qparams_fn", "dtype", "quant_min", "quant_max", "qscheme", "ch_axis", "is_dynamic")))  # fmt: skip
            return spec

        annotation.input_qspec_map.update({k: renamed(v) for k, v in annotation.input_qspec_map.items()})
        annotation.output_qspec = renamed(annotation.output_qspec)


def _scale_weight(model: GraphModule, layer: Node, norm: Node) -> None:
    """Multiplies the weight by the batch norm's scale (of the running variance) and divides the result by it again."""
    graph, weight, bias = model.graph, layer.args[1], argument(layer, 2)
    rank = layer.meta["val"].dim()
    along_weight = [1, -1] if is_call(layer, CONV_TRANSPOSE) else [-1, 1]
    with graph.inserting_before(layer):
        deviation = graph.call_function(aten.sqrt.default, (graph.call_function(aten.add.Tensor, (norm.args[4], norm.args[7])),))
        scale = graph.call_function(aten.div.Tensor, (norm.args[1], deviation))
        shaped = graph.call_function(aten.reshape.default, (scale, along_weight + [1] * (rank - 2)))
        scaled = graph.call_function(aten.mul.Tensor, (weight, shaped))
        scaled.meta["val"] = weight.meta["val"]
        zeros = bias and graph.call_function(aten.zeros_like.default, (bias,), {"dtype": _C.float32, "pin_memory": False})
    layer.args = (layer.args[0], scaled, zeros, *layer.args[3:])
    channels = [1, -1] + [1] * (rank - 2)
    with graph.inserting_before(norm):
        result = graph.call_function(aten.div.Tensor, (layer, graph.call_function(aten.reshape.default, (scale, channels))))
        if bias is not None:
            result = graph.call_function(aten.add.Tensor, (result, graph.call_function(aten.reshape.default, (bias, channels))))
    norm.args = (result, *norm.args[1:])
    annotation = layer.meta[Q_ANNOTATION_KEY]
    if bias is not None and annotation.input_qspec_map.pop(bias, None) is not None:
        raise NotImplementedError("[prepare_qat_pt2e] the bias of a convolution before a batch norm cannot be quantized")
    _move_annotations(model, layer, weight, scaled)


def prepare_batch_norms(model: GraphModule) -> None:
    """Rewrites every annotated convolution that a batch norm follows."""
    for norm in list(model.graph.nodes):
        layer = norm.args[0] if is_call(norm, BATCH_NORM) else None
        if not is_call(layer, CONV + CONV_TRANSPOSE) or len(layer.users) > 1 or Q_ANNOTATION_KEY not in layer.meta:
            continue
        if all(is_constant(n) for n in (layer.args[1], *norm.args[1:5])):
            _scale_weight(model, layer, norm)
    model.graph.eliminate_dead_code()
    model.recompile()


def _training_form(norm: Node) -> tuple[Node, Node, Node | None] | None:
    """(layer, scaled weight, bias) of a batch norm that prepare_batch_norms() rewrote; None of any other."""
    result, bias = norm.args[0], None
    if is_call(result, (aten.add.Tensor,)) and is_call(result.args[1], (aten.reshape.default,)):
        result, bias = result.args[0], result.args[1].args[0]
    if not is_call(result, (aten.div.Tensor,)) or not is_call(layer := result.args[0], CONV + CONV_TRANSPOSE):
        return None
    scaled = layer.args[1]
    while isinstance(scaled, Node) and not is_call(scaled, (aten.mul.Tensor,)):  # through quantize and dequantize
        scaled = scaled.args[0] if scaled.args else None
    return None if scaled is None or not is_constant(scaled.args[0]) else (layer, scaled, bias)


def _private(model: GraphModule, node: Node, own: set[Node], before: Node) -> Node:
    """The attribute that a node reads, or a copy of it as a new parameter if other nodes than `own` read it too."""
    if set(uses(model, node)) <= own:
        return node
    value = constant(model, node)
    name = next(n for n in numbered(f"_folded_{str(node.target).replace('.', '_')}_") if not hasattr(model, n))
    set_parameter(model, name, value.detach().clone(), value.requires_grad)
    with model.graph.inserting_before(before):
        copied = model.graph.get_attr(name)
    copied.meta.update(node.meta)
    return copied


def fold_batch_norms(model: GraphModule) -> None:
    """After the observers became quantize and dequantize nodes: folds the batch norms into the layers' weights and biases."""
    graph, found = model.graph, False
    for norm in list(graph.nodes):
        if not is_call(norm, BATCH_NORM) or (form := _training_form(norm)) is None:
            continue
        layer, scaled, bias = form
        weight = _private(model, scaled.args[0], {scaled}, scaled)
        if bias is not None:
            zeros, added = layer.args[2], norm.args[0].args[1]
            bias = _private(model, bias, {zeros, added}, scaled)
        scaled.replace_all_uses_with(weight)
        layer.args = (*layer.args[:2], bias, *layer.args[3:])
        fold_batch_norm(model, layer, norm, weight)
        found = True
    for node in list(graph.nodes) if found else ():  # the counters of batches
        if is_call(node, (aten.add_.Tensor,)) and is_constant(node.args[0]) and not node.users:
            if str(node.args[0].target).endswith("num_batches_tracked"):
                graph.erase_node(node)
    graph.eliminate_dead_code()
    model.recompile()
