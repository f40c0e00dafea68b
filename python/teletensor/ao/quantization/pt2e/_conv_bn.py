"""Folds batch norms into the convolutions and linear layers before them."""

from __future__ import annotations

from typing import Any

from ...._grad_mode import no_grad
from ....fx import GraphModule, Node
from ....nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from ..quantizer._operators import BATCH_NORM, CONV, CONV_TRANSPOSE, LINEAR, is_call
from ._graph import argument, constant, get_tensor, is_constant, set_parameter, uses


@no_grad()
def fold_batch_norm(model: GraphModule, layer: Node, norm: Node, weight_node: Node, weights_folded: bool = False) -> None:
    """Multiplies a layer's weight and bias by the scale of a batch norm and removes the batch norm from the graph.

    Args:
        weight_node: the layer's weight as an attribute of the module.
        weights_folded: the layer's weight and bias, which several nodes use, contain the batch norm already.
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
    target = str(weight_node.target) + "_bias" if bias_node is None else str(bias_node.target)
    if not weights_folded:
        set_parameter(model, target, bias.detach(), trainable)
    elif bias is None:
        bias = get_tensor(model, target)
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


def _same_everywhere(model: GraphModule, layer: Node, norm: Node) -> bool:
    """Whether the layer's weight and bias have no other uses than layers alike that the same batch norm follows."""
    def sources(nodes: tuple) -> list:
        return [getattr(n, "target", n) for n in nodes]

    for user in {*uses(model, layer.args[1]), *uses(model, argument(layer, 2))}:
        follower = next(iter(user.users)) if len(user.users) == 1 else None
        if user.target is not layer.target or sources(user.args[1:3]) != sources(layer.args[1:3]):
            return False
        if not is_call(follower, BATCH_NORM) or follower.args[0] is not user or sources(follower.args[1:]) != sources(norm.args[1:]):
            return False
    return True


def fuse_batch_norms(model: GraphModule) -> None:
    """Folds every batch norm that follows a convolution or a linear layer with a matrix as input.

    A batch norm after a layer whose weight has other uses, such as a layer without a batch norm, remains.
    """
    folded: set[Any] = set()
    for norm in list(model.graph.nodes):
        if not is_call(norm, BATCH_NORM):
            continue
        layer = norm.args[0]
        matrix = is_call(layer, LINEAR) and "val" in layer.meta and layer.meta["val"].dim() == 2
        if not (is_call(layer, CONV + CONV_TRANSPOSE) or matrix) or not _has_constants(layer, norm) or len(layer.users) > 1:
            continue
        target = layer.args[1].target
        if target not in folded and not _same_everywhere(model, layer, norm):
            continue
        fold_batch_norm(model, layer, norm, layer.args[1], weights_folded=target in folded)
        folded.add(target)
    model.graph.eliminate_dead_code()
    model.recompile()
