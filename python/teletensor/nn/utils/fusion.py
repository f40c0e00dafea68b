"""Folding batch norms into preceding layers, for inference."""

from __future__ import annotations

import copy

from ..._C import Tensor
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fuse(weight: Tensor, bias, mean: Tensor, var: Tensor, eps: float, gamma, beta, dim: int):
    """The weight and bias of a layer with its batch norm folded in. `dim` is the weight's dimension of outputs."""
    scale = (var + eps).rsqrt()
    scale = scale if gamma is None else scale * gamma
    shape = [-1 if d == dim else 1 for d in range(weight.dim())]
    shift = -mean * scale if bias is None else (bias - mean) * scale
    moved = shift if beta is None else shift + beta
    return Parameter(weight * scale.reshape(shape), weight.requires_grad), Parameter(moved, weight.requires_grad)


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
        layer.weight.detach(), None if layer.bias is None else layer.bias.detach(), bn.running_mean, bn.running_var, bn.eps,
        None if bn.weight is None else bn.weight.detach(), None if bn.bias is None else bn.bias.detach(), 1 if transpose else 0,
    )  # fmt: skip
    return result


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A copy of the convolution that includes the batch norm, for eval mode."""
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer that includes the batch norm, for eval mode."""
    return _fused(linear, bn, False)
