"""Folds batch norms into the convolutions and linear layers before them."""

from __future__ import annotations

from .... import _C
from ...._grad_mode import no_grad
from ....fx import GraphModule, Node
from ....nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from ..quantizer._operators import BATCH_NORM, CONV, CONV_TRANSPOSE, LINEAR, is_call
from ._graph import argument, constant, is_constant, set_parameter


@no_grad()
def fold_batch_norm(model: GraphModule, layer: Node, norm: Node, weight_node: Node, weights_folded: bool = False) -> None:
    """Multiplies a layer's weight and bias by the scale of a batch norm and removes the batch norm from the graph.

    Args:
        weight_node: the layer's weight as an attribute of the module.
        weights_folded: the layer's weight, which several nodes use, contains the scale already.
    """
    bias_node = argument(layer, 2)
    weight, bias = constant(model, weight_node), constant(model, bias_node)
    scale, shift, mean, var = (constant(model, n) for n in norm.args[1:5])
    trainable = weight.requires_grad
    if not weights_folded:
        if is_call(layer, LINEAR):
            weight, bias = fuse_linear_bn_weights(weight, bias, mean, var, norm.args[7], scale, shift)
        else:
            transposed = is_call(layer, CONV_TRANSPOSE)
            weight, bias = fuse_conv_bn_weights(weight, bias, mean, var, norm.args[7], scale, shift, transpose=transposed)
        set_parameter(model, str(weight_node.target), weight.detach(), trainable)
    elif bias is None:
        bias = _C.torch.zeros_like(mean)
    target = str(weight_node.target) + "_bias" if bias_node is None else str(bias_node.target)
    set_parameter(model, target, bias.detach(), trainable)
    if bias_node is None:
        with model.graph.inserting_before(layer):
            bias_node = model.graph.get_attr(target)
        if "val" in layer.meta:
            bias_node.meta["val"] = layer.meta["val"].fake_mode.from_tensor(bias)
        layer.args = (*layer.args[:2], bias_node, *layer.args[3:])
    norm.replace_all_uses_with(layer)
    model.graph.erase_node(norm)


def _has_constants(layer: Node, norm: Node) -> bool:
    parameters = [*layer.args[1:3], *norm.args[1:5]]
    return all(n is None or is_constant(n) for n in parameters) and norm.args[3] is not None


def fuse_batch_norms(model: GraphModule) -> None:
    """Folds every batch norm that follows a convolution or a linear layer with a matrix as input."""
    folded: set[Node] = set()
    for norm in list(model.graph.nodes):
        if not is_call(norm, BATCH_NORM):
            continue
        layer = norm.args[0]
        matrix = is_call(layer, LINEAR) and "val" in layer.meta and layer.meta["val"].dim() == 2
        if not (is_call(layer, CONV + CONV_TRANSPOSE) or matrix) or not _has_constants(layer, norm) or len(layer.users) > 1:
            continue
        fold_batch_norm(model, layer, norm, layer.args[1], weights_folded=layer.args[1] in folded)
        folded.add(layer.args[1])
    model.graph.eliminate_dead_code()
    model.recompile()
