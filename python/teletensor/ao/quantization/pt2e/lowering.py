"""Integer kernels for converted models: layers between dequantize and quantize nodes multiply integers.

===================================================================  =====================================================
of a converted model                                                 in a lowered one
===================================================================  =====================================================
dequantize, linear or convolution, perhaps relu, quantize            a sum of integer products, requantized once
dequantize, linear or convolution, perhaps relu                      a sum of integer products, scaled to float32
choose_qparams, quantize, dequantize, linear, perhaps relu           the engine's dynamic linear layer
dequantize, reshape, flatten, permute or max_pool2d, quantize alike  the same operator on the integers
===================================================================  =====================================================

Sums of integers are exact, so the results differ from the converted model's by the rounding of float32 sums, which may
change a requantized value by one step.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, NamedTuple

from .... import _C, ops
from ...._C import Tensor
from ...._grad_mode import no_grad
from ....fx import GraphModule, Node
from ..quantizer._operators import CONV, LINEAR, RELU, is_call, operators
from ._graph import add_buffer, argument, constant, is_constant

__all__ = ["lower_pt2e", "lower_pt2e_quantized_to_x86"]

_LAYOUT = operators(
    "flatten.using_ints view.default reshape.default permute.default transpose.int squeeze.dim unsqueeze.default max_pool2d.default"
)
_SMALLEST_SCALE = 2**-12  # of the observers of dynamic scales; the kernel has none, and is exact for smaller inputs
_EIGHT_BITS = (_C.int8, _C.uint8)


class _Quantized(NamedTuple):
    """A tensor of 8-bit integers in a graph: the node of the integers, and how they represent numbers."""

    node: Node
    scale: Any  # a number, or a tensor with one element per channel
    zero_point: Any
    limits: tuple[int, int]
    dtype: Any


class _Lowering:
    """Rewrites one graph."""

    def __init__(self, model: GraphModule) -> None:
        self.model, self.graph = model, model.graph
        self.d = ops.quantized_decomposed
        self.per_tensor = (self.d.dequantize_per_tensor.default,)
        self.per_channel = (self.d.dequantize_per_channel.default,)
        self.count = 0

    def _activation(self, node: Any) -> _Quantized | None:
        """The integers that a dequantize node converts, quantized per tensor."""
        if not is_call(node, self.per_tensor) or node.args[5] not in _EIGHT_BITS:
            return None
        q, scale, zero_point, low, high, dtype = node.args[:6]
        return _Quantized(q, scale, zero_point, (low, high), dtype)

    def _weight(self, node: Any) -> _Quantized | None:
        """The integers of a constant weight: int8, per tensor or per channel of dimension 0."""
        if is_call(node, self.per_channel) and is_constant(node.args[0]) and node.args[3] == 0 and node.args[6] == _C.int8:
            scale, zero_point = (constant(self.model, n) for n in node.args[1:3])
            return _Quantized(node.args[0], scale, zero_point, (node.args[4], node.args[5]), node.args[6])
        found = self._activation(node)
        return found if found is not None and is_constant(found.node) and found.dtype == _C.int8 else None

    def _tensor(self, prefix: str, value: Tensor) -> Node:
        """A new buffer as a node at the current place."""
        return self.graph.get_attr(add_buffer(self.model, prefix, value))

    def _tail(self, node: Node) -> tuple[Node, bool, Node | None]:
        """(last node of the layer and its relu, whether there is a relu, the quantize node that alone follows)."""
        last, relu = node, False
        if len(last.users) == 1 and is_call(user := next(iter(last.users)), RELU):
            last, relu = user, True
        if len(last.users) == 1 and is_call(user := next(iter(last.users)), (self.d.quantize_per_tensor.default,)):
            return last, relu, user if user.args[5] in _EIGHT_BITS else None
        return last, relu, None

    def _scales(self, x: _Quantized, w: _Quantized) -> tuple[Tensor, Tensor]:
        """The scale of sums of products, for the result's channels, and the weight's zero points."""
        scale = w.scale if isinstance(w.scale, Tensor) else _C.tensor([w.scale])
        points = w.zero_point if isinstance(w.zero_point, Tensor) else _C.tensor([w.zero_point])
        return (scale.to(_C.float64) * x.scale).to(_C.float32), points.to(_C.int32)

    def layer(self, node: Node) -> None:
        """Replaces a linear layer or a convolution with quantized input and weight."""
        x, w = self._activation(node.args[0]), self._weight(node.args[1])
        if w is None:
            return
        if x is None:
            self._dynamic(node, w)
            return
        convolution = is_call(node, CONV)
        rank = constant(self.model, w.node).dim() if convolution else 2
        value = node.meta.get("val")
        if convolution and (value is None or value.dim() != rank):
            return  # one image without a batch, for which there is no kernel
        last, relu, quantize = self._tail(node)
        with self.graph.inserting_before(quantize or last):
            scale, points = self._scales(x, w)
            weight_points = 0 if not bool(points.any()) else self._tensor("_weight_zero_points", points)
            name, operands = self._operands(node, convolution, x, w, weight_points, rank)
            bias = argument(node, 2)
            if quantize is not None:
                out_scale, out_point, low, high, dtype = quantize.args[1:6]
                low = min(max(low, out_point), high) if relu else low
                scale_node = self._tensor("_scale_of_sums", scale)
                arguments = (*operands, scale_node, bias, out_scale, out_point, low, high, dtype == _C.int8)
                result = self.graph.call_function(getattr(ops.teletensor, f"{name}_quantized").default, arguments)
                quantize.replace_all_uses_with(result)
            else:
                sums = self.graph.call_function(getattr(ops.teletensor, name).default, operands)
                result = self._numbers(sums, scale, bias, rank)
                if relu:
                    result = self.graph.call_function(ops.aten.relu.default, (result,))
                if value is not None and value.dtype != _C.float32:  # a model in float16 or bfloat16
                    result = self.graph.call_function(ops.aten._to_copy.default, (result,), {"dtype": value.dtype})
                last.replace_all_uses_with(result)
        self.count += 1

    def _numbers(self, sums: Node, scale: Tensor, bias: Node | None, rank: int) -> Node:
        """Sums times their scale, plus the bias, as float32."""
        channels = (-1, *(1,) * (rank - 2))
        result = self.graph.call_function(ops.aten.mul.Tensor, (sums, self._tensor("_scale_of_sums", scale.reshape(channels))))
        if bias is None:
            return result
        if rank > 2:
            bias = self.graph.call_function(ops.aten.reshape.default, (bias, list(channels)))
        return self.graph.call_function(ops.aten.add.Tensor, (result, bias))

    def _operands(
        self, node: Node, convolution: bool, x: _Quantized, w: _Quantized, points: Any, rank: int
    ) -> tuple[str, tuple]:
        """The engine's operator with integer sums, and its arguments."""
        operands = (x.node, w.node, x.zero_point, points)
        if not convolution:
            return "int8_linear", operands
        dims = rank - 2
        stride, padding, dilation = (argument(node, i, d) for i, d in ((3, 1), (4, 0), (5, 1)))
        sizes = [list(v) if isinstance(v, (list, tuple)) else [v] * dims for v in (stride, padding, dilation)]
        sizes = [v * dims if len(v) == 1 else v for v in sizes]
        return "int8_convolution", (*operands, *sizes, argument(node, 6, 1))

    def _dynamic(self, node: Node, w: _Quantized) -> None:
        """Replaces a linear layer whose input is quantized when the model runs."""
        dequantize = node.args[0]
        if not is_call(node, LINEAR) or not is_call(dequantize, (self.d.dequantize_per_tensor.tensor,)):
            return
        quantize = dequantize.args[0]
        if not is_call(quantize, (self.d.quantize_per_tensor.tensor,)) or not is_call(quantize.args[1], (operator.getitem,)):
            return
        choose = quantize.args[1].args[0]
        if not is_call(choose, (self.d.choose_qparams.tensor,)) or choose.args[2] - choose.args[1] != 255:
            return
        chosen = [n if is_call(n, (operator.getitem,)) and n.args[0] is choose else None for n in quantize.args[1:3]]
        alike = quantize.args[0] is choose.args[0] and [n and n.args[1] for n in chosen] == [0, 1]
        if not alike or quantize.args[3:5] != choose.args[1:3] or choose.args[3] > _SMALLEST_SCALE:
            return
        if dequantize.args[1:5] != quantize.args[1:5]:
            return
        last, relu, _ = self._tail(node)
        with self.graph.inserting_before(node):
            scale = w.scale if isinstance(w.scale, Tensor) else _C.tensor([w.scale])
            points = w.zero_point if isinstance(w.zero_point, Tensor) else _C.tensor([w.zero_point])
            scale_node = self._tensor("_weight_scales", scale.to(_C.float32))
            weight_points = 0 if not bool(points.any()) else self._tensor("_weight_zero_points", points.to(_C.int32))
            arguments = (choose.args[0], w.node, scale_node, weight_points, argument(node, 2), False, False, relu)
            result = self.graph.call_function(ops.teletensor.int8_linear_dynamic.default, arguments)
        (last if relu else node).replace_all_uses_with(result)
        self.count += 1

    def layout(self, node: Node) -> None:
        """Replaces dequantize, a change of shape, and quantize with the same parameters by the change of shape."""
        x = self._activation(node.args[0])
        if x is None or len(node.users) != 1 or not is_call(user := next(iter(node.users)), (self.d.quantize_per_tensor.default,)):
            return
        if user.args[1:6] != (x.scale, x.zero_point, *x.limits, x.dtype):
            return
        with self.graph.inserting_before(node):
            moved = self.graph.call_function(node.target, (x.node, *node.args[1:]), dict(node.kwargs))
        user.replace_all_uses_with(moved)

    def run(self) -> None:
        """Rewrites the graph."""
        for node in list(self.graph.nodes):
            if is_call(node, LINEAR + CONV):
                self.layer(node)
        for node in list(self.graph.nodes):
            if is_call(node, _LAYOUT) and node.args:
                self.layout(node)
        self.graph.eliminate_dead_code()
        _remove_unused(self.model)
        self.model.recompile()


def _remove_unused(model: GraphModule) -> None:
    """Removes parameters and buffers that no node reads, such as the weights before they were quantized."""
    used = {str(n.target) for n in model.graph.nodes if n.op == "get_attr"}
    for name in [name for name, _ in (*model.named_parameters(), *model.named_buffers()) if name not in used]:
        path, _, attribute = name.rpartition(".")
        delattr(model.get_submodule(path), attribute)


@no_grad()
def lower_pt2e(model: GraphModule, inplace: bool = False) -> GraphModule:
    """Replaces the layers of a converted model by integer kernels, and removes the weights in float32.

    Args:
        model: the result of convert_pt2e().
        inplace: changes the model instead of a copy.
    """
    if not isinstance(model, GraphModule):
        raise TypeError(f"[lower_pt2e] expected the result of convert_pt2e(), got {type(model).__name__}")
    model = model if inplace else copy.deepcopy(model)
    _Lowering(model).run()
    return model


def lower_pt2e_quantized_to_x86(model: GraphModule, example_inputs: tuple, inplace: bool = False) -> GraphModule:
    """lower_pt2e() under torchao's name; runs the lowered model once with the example inputs."""
    lowered = lower_pt2e(model, inplace)
    with no_grad():
        lowered(*example_inputs)
    return lowered
