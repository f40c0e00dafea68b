"""Fusion of a batch norm into the convolution or linear layer before it, for evaluation."""

from __future__ import annotations

import copy

from ... import _C
from ..._grad_mode import no_grad
from ...nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Module, Parameter, ReLU, Sequential


def _check(is_qat: bool, first: Module, bn: Module) -> None:
    if first.training != bn.training:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    if is_qat or first.training:
        raise NotImplementedError("fuse: only evaluation is implemented (is_qat=False, model.eval()); there are no quantized dtypes yet")
    if not isinstance(bn, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
        raise NotImplementedError(f"Cannot fuse eval modules: {type(first).__name__} and {type(bn).__name__}")


@no_grad()
def _fused(layer: Module, bn: Module, transposed: bool = False) -> Module:
    """A copy of the layer that computes the layer and then the batch norm, with its running statistics."""
    result = copy.deepcopy(layer)
    scale = (bn.running_var + bn.eps).rsqrt()
    scale = scale if bn.weight is None else scale * bn.weight
    shift = _C.torch.zeros_like(bn.running_mean) if bn.bias is None else bn.bias
    bias = _C.torch.zeros_like(bn.running_mean) if layer.bias is None else layer.bias
    shape = [1] * layer.weight.dim()
    shape[1 if transposed else 0] = -1
    if transposed and layer.groups > 1:
        raise NotImplementedError("fuse_convtranspose_bn: only groups=1 is implemented")
    result.weight = Parameter((layer.weight * scale.reshape(shape)).detach(), layer.weight.requires_grad)
    result.bias = Parameter(((bias - bn.running_mean) * scale + shift).detach(), layer.weight.requires_grad)
    return result


def fuse_conv_bn(is_qat: bool, conv: Module, bn: Module) -> Module:
    """A convolution that includes the batch norm; both must be in evaluation mode."""
    _check(is_qat, conv, bn)
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
    return _fused(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Module, bn: Module, relu: ReLU) -> Module:
    """The fused convolution and the ReLU, one after the other."""
    return Sequential(fuse_conv_bn(is_qat, conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Module, bn: Module) -> Module:
    """A linear layer that includes the batch norm; both must be in evaluation mode."""
    _check(is_qat, linear, bn)
    return _fused(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Module, bn: Module) -> Module:
    """A transposed convolution that includes the batch norm; both must be in evaluation mode."""
    _check(is_qat, convt, bn)
    return _fused(convt, bn, True)
