"""Replaces the observers of a calibrated graph by operators that quantize and dequantize."""

from __future__ import annotations

import operator
from typing import Any

from .... import _C, ops
from .... import _quantized_names as q
from ....fx import GraphModule, Node
from ..quantizer._operators import is_call
from ..quantizer.quantizer import Q_ANNOTATION_KEY
from ..quantizer.utils import is_valid_annotation
from ._fold import fold_constants, quantize_targets
from ._graph import add_buffer, constant, is_constant, observer_of
from ._qat import fold_batch_norms

_STORED = {q.quint8: _C.uint8, q.qint8: _C.int8, q.qint32: _C.int32}
_STATIC = (_C.uint8, _C.int8, _C.int16, _C.int32)
_PER_CHANNEL = (q.per_channel_affine, q.per_channel_symmetric, q.per_channel_affine_float_qparams)


def _dequantize_options(source: Node) -> dict[str, Any]:
    value = source.meta.get("val")
    return {} if value is None or value.dtype == _C.float32 else {"out_dtype": value.dtype}


class _Conversion:
    """Replaces observers in one graph."""

    def __init__(self, model: GraphModule) -> None:
        self.model, self.graph, self.operators = model, model.graph, ops.quantized_decomposed

    def _pair(self, node: Node, quantize: Any, dequantize: Any, arguments: tuple) -> None:
        """Replaces an observer by quantize and dequantize with the same arguments."""
        source = node.args[0]
        quantized = self.graph.call_function(quantize, (source, *arguments))
        result = self.graph.call_function(dequantize, (quantized, *arguments), _dequantize_options(source))
        if "val" in source.meta:
            result.meta["val"] = source.meta["val"]
        node.replace_all_uses_with(result)

    def _static(self, node: Node, observer: Any, dtype: Any) -> None:
        scale, zero_point = observer.calculate_qparams()
        limits = (observer.quant_min, observer.quant_max, dtype)
        if observer.qscheme in _PER_CHANNEL:
            names = add_buffer(self.model, "_scale_", scale), add_buffer(self.model, "_zero_point_", zero_point)
            tensors = [self.graph.create_node("get_attr", name, (), {}) for name in names]
            packets = self.operators.quantize_per_channel, self.operators.dequantize_per_channel
            arguments = (*tensors, int(observer.ch_axis), *limits)
        else:
            packets = self.operators.quantize_per_tensor, self.operators.dequantize_per_tensor
            arguments = (float(scale), int(zero_point), *limits)
        self._pair(node, packets[0].default, packets[1].default, arguments)

    def _dynamic(self, node: Node, observer: Any, dtype: Any) -> None:
        """The scale and zero point are computed from the input."""
        if dtype not in (_C.uint8, _C.int8):
            raise AssertionError(f"only uint8 and int8 are supported in reference flow for dynamic quantization right now, got {dtype}")
        scheme = getattr(observer, "qscheme", q.per_tensor_affine)
        choose = {q.per_tensor_affine: "choose_qparams", q.per_tensor_symmetric: "choose_qparams_symmetric"}[scheme]
        limits = (observer.quant_min, observer.quant_max)
        epsilon = getattr(observer, "eps", 2.0**-23)
        epsilon = epsilon.item() if isinstance(epsilon, _C.Tensor) else epsilon
        chosen = self.graph.call_function(getattr(self.operators, choose).tensor, (node.args[0], *limits, epsilon, dtype))
        pair = [self.graph.call_function(operator.getitem, (chosen, i)) for i in range(2)]
        d = self.operators
        self._pair(node, d.quantize_per_tensor.tensor, d.dequantize_per_tensor.tensor, (*pair, *limits, dtype))

    def _half(self, node: Node) -> None:
        """float16 and back."""
        convert = self.operators.convert_element_type.no_fuse
        half = self.graph.call_function(convert, (node.args[0], _C.float16))
        node.replace_all_uses_with(self.graph.call_function(convert, (half, _C.float32)))

    def replace(self, node: Node, observer: Any) -> None:
        """Replaces an observer; one without a quantized dtype is removed."""
        if hasattr(observer, "convert"):
            observer.convert(self.model, node)
            return
        dtype = _STORED.get(observer.dtype, observer.dtype)
        with self.graph.inserting_before(node):
            if getattr(observer, "is_dynamic", False):
                self._dynamic(node, observer, dtype)
            elif dtype in _STATIC:
                self._static(node, observer, dtype)
            elif dtype == _C.float16:
                self._half(node)
            elif dtype in (_C.float8_e4m3fn, _C.float8_e5m2):
                raise NotImplementedError(f"[convert_pt2e] observers of {dtype} are not converted; use quantize_() for float8 weights")
            else:
                node.replace_all_uses_with(node.args[0])
        self.graph.erase_node(node)


def _observe_weights(model: GraphModule) -> None:
    """Runs the observers of constants, which calibration may not have run."""
    for node in model.graph.nodes:
        observer = observer_of(model, node)
        if observer is not None and is_constant(node.args[0]) and hasattr(observer, "min_val"):
            observer(constant(model, node.args[0]))


def _duplicate_dequantize(model: GraphModule) -> None:
    """Copies a dequantize node for each of its annotated users, so that each can be lowered alone."""
    d = ops.quantized_decomposed
    targets = (d.dequantize_per_tensor.default, d.dequantize_per_tensor.tensor, d.dequantize_per_channel.default)
    for node in list(model.graph.nodes):
        if not is_call(node, targets) or len(node.users) <= 1:
            continue
        quantized = node.args[0]
        if is_call(quantized, quantize_targets()) and is_call(quantized.args[1], (operator.getitem,)):
            continue  # one dynamic choice of a scale for all users
        for user in list(node.users):
            if not is_valid_annotation(user.meta.get(Q_ANNOTATION_KEY)):
                continue
            with model.graph.inserting_after(node):
                copy = model.graph.node_copy(node)
            user.replace_input_with(node, copy)


def convert(model: GraphModule, fold_quantize: bool) -> GraphModule:
    """Replaces the observers of a model; see convert_pt2e()."""
    _observe_weights(model)
    conversion = _Conversion(model)
    for node in list(model.graph.nodes):
        observer = observer_of(model, node)
        if observer is not None:
            conversion.replace(node, observer)
            model.delete_submodule(str(node.target))
    model.graph.eliminate_dead_code()
    model.delete_all_unused_submodules()
    fold_batch_norms(model)
    _duplicate_dequantize(model)
    model.graph.eliminate_dead_code()
    if fold_quantize:
        fold_constants(model, quantize_targets())
    model.recompile()
    return model
