"""Folding batch norms into preceding layers, for inference."""

from __future__ import annotations

import copy

from ..._C import Tensor
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fuse(weight: Tensor, bias, mean: Tensor, var: Tensor, eps: float, gamma, beta, dim: int):
    """The weight and bias of a layer with its batch norm folded in. `dim` is the weight's dimension of outputs.

    The results keep the dtypes and the requires_grad of the layer's weight and bias; a new bias requires no grad.
    """
    if mean is None or var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    scale = (var + eps).rsqrt()
    scale = scale if gamma is None else scale * gamma
    shape = [-1 if d == dim else 1 for d in range(weight.dim())]
    shift = -mean * scale if bias is None else (bias - mean) * scale
    moved = shift if beta is None else shift + beta
    fused = (weight * scale.reshape(shape)).to(weight.dtype), moved.to(weight.dtype if bias is None else bias.dtype)
    return Parameter(fused[0], weight.requires_grad), Parameter(fused[1], bias is not None and bias.requires_grad)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose: bool = False):
    """The weight and bias of a convolution with its batch norm folded in."""
    return _fuse(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of a linear layer with its batch norm folded in."""
    return _fuse(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer, bn, transpose: bool):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    result = copy.deepcopy(layer)
    result.weight, result.bias = _fuse(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, 1 if transpose else 0
    )
    return result


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A copy of the convolution that includes the batch norm, for eval mode."""
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer that includes the batch norm, for eval mode."""
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, False)
