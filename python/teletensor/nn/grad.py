"""Gradients of convolutions with respect to their inputs and weights, as functions; see torch.nn.grad."""

from __future__ import annotations

from typing import Callable

from .. import _C
from .._C import Tensor
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(function: Callable, input: Tensor, weight: Tensor, wanted: int, grad_output: Tensor, options: tuple) -> Tensor:
    from .._grad_mode import enable_grad
    from ..autograd import grad

    with enable_grad():
        leaves = [input.detach(), weight.detach()]
        leaves[wanted].requires_grad_()
        return grad(function(*leaves, None, *options), leaves[wanted], grad_output)[0]


def _input_function(n: int) -> Callable:
    function = getattr(F, f"conv{n}d")

    def conv_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1) -> Tensor:
        input = _C.torch.empty(*input_size, dtype=weight.dtype, device=weight.device)
        return _gradient(function, input, weight, 0, grad_output, (stride, padding, dilation, groups))

    conv_input.__name__ = conv_input.__qualname__ = f"conv{n}d_input"
    conv_input.__doc__ = f"The gradient of conv{n}d with respect to its input, which has the given size."
    return conv_input


def _weight_function(n: int) -> Callable:
    function = getattr(F, f"conv{n}d")

    def conv_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1) -> Tensor:
        weight = _C.torch.empty(*weight_size, dtype=input.dtype, device=input.device)
        return _gradient(function, input, weight, 1, grad_output, (stride, padding, dilation, groups))

    conv_weight.__name__ = conv_weight.__qualname__ = f"conv{n}d_weight"
    conv_weight.__doc__ = f"The gradient of conv{n}d with respect to its weight, which has the given size."
    return conv_weight


conv1d_input, conv2d_input, conv3d_input = map(_input_function, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight_function, (1, 2, 3))
