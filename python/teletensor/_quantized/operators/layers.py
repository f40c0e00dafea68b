"""Activations, normalisations and pooling of torch.ops.quantized, computed on the numbers in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ..calls import clamped
from ..define import kernel
from ..quantizer import Quantizer
from ..tensor import QuantizedTensor, wrapped
from .arithmetic import check_quantized, quantized_numbers

_F = _C.ops


def _result(name: str, x: Any, compute: Callable[[Tensor], Tensor], scale: float, zero_point: int, relu: bool = False) -> QuantizedTensor:
    check_quantized(name, x)
    return quantized_numbers(compute(x.dequantize()), Quantizer(x.dtype, scale, zero_point), relu)


def _batch_norm(name: str, dims: Sequence[int], relu: bool) -> None:
    @kernel(name)
    def batch_norm(
        x: Any, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: float, zero_point: int
    ) -> QuantizedTensor:
        if x.dim() not in dims:
            raise RuntimeError(f"[quantized::{name}] expected an input of {' or '.join(map(str, dims))} dimensions, got {x.dim()}")
        inverse = _C.torch.rsqrt(var + eps)
        factor = inverse if weight is None else inverse * weight
        shift = -mean * factor if bias is None else bias - mean * factor
        shape = [-1, *[1] * (x.dim() - 2)]
        return _result(name, x, lambda n: n * factor.reshape(shape) + shift.reshape(shape), scale, zero_point, relu)


for _end, _relu in (("", False), ("_relu", True)):
    _batch_norm(f"batch_norm{_end}", (2, 3, 4, 5), _relu)
    _batch_norm(f"batch_norm1d{_end}", (2, 3), _relu)
    _batch_norm(f"batch_norm2d{_end}", (4,), _relu)
    _batch_norm(f"batch_norm3d{_end}", (5,), _relu)


@kernel("layer_norm")
def layer_norm(
    x: Any, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero_point: int
) -> QuantizedTensor:
    """layer_norm of the numbers, quantized."""
    return _result("layer_norm", x, lambda n: _F.layer_norm(n, list(normalized_shape), weight, bias, eps), scale, zero_point)


@kernel("group_norm")
def group_norm(
    x: Any, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero_point: int
) -> QuantizedTensor:
    """group_norm of the numbers, quantized."""
    return _result("group_norm", x, lambda n: _C.ops.group_norm(n, num_groups, weight, bias, eps), scale, zero_point)


@kernel("instance_norm")
def instance_norm(
    x: Any, weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero_point: int
) -> QuantizedTensor:
    """instance_norm of the numbers, quantized."""
    return _result("instance_norm", x, lambda n: _C.ops.group_norm(n, n.shape[1], weight, bias, eps), scale, zero_point)


@kernel("leaky_relu")
def leaky_relu(x: Any, negative_slope: float, inplace: bool, scale: float, zero_point: int) -> QuantizedTensor:
    """leaky_relu of the numbers, quantized; into the input if ``inplace``."""
    result = _result("leaky_relu", x, lambda n: _F.leaky_relu(n, negative_slope), scale, zero_point)
    if not inplace:
        return result
    x._ints.copy_(result._ints)
    x._quantizer = result._quantizer
    return x


@kernel("hardswish")
def hardswish(x: Any, scale: float, zero_point: int) -> QuantizedTensor:
    """hardswish of the numbers, quantized."""
    return _result("hardswish", x, _F.hardswish, scale, zero_point)


@kernel("elu")
def elu(x: Any, output_scale: float, zero_point: int, alpha: float, scale: float, input_scale: float) -> QuantizedTensor:
    """scale * elu(x), where the exponent of a negative number is multiplied by ``input_scale``; quantized."""
    def compute(n: Tensor) -> Tensor:
        negative = _C.torch.expm1(n * input_scale) * (alpha * scale)
        return _C.torch.where(n > 0, n * scale, negative)

    return _result("elu", x, compute, output_scale, zero_point)


@kernel("celu")
def celu(x: Any, scale: float, zero_point: int, alpha: float) -> QuantizedTensor:
    """celu of the numbers, quantized."""
    return _result("celu", x, lambda n: _F.celu(n, alpha), scale, zero_point)


@kernel("sigmoid")
def sigmoid(x: Any, scale: float, zero_point: int) -> QuantizedTensor:
    """sigmoid of the numbers, quantized."""
    return _result("sigmoid", x, _C.torch.sigmoid, scale, zero_point)


@kernel("softmax")
def softmax(x: Any, dim: int, scale: float, zero_point: int) -> QuantizedTensor:
    """softmax of the numbers, quantized."""
    return _result("softmax", x, lambda n: _C.ops.softmax(n, dim), scale, zero_point)


@kernel("prelu")
def prelu(x: Any, weight: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """prelu of the numbers, quantized."""
    return _result("prelu", x, lambda n: _C.ops.prelu(n, weight.dequantize()), scale, zero_point)


@kernel("threshold")
def threshold(x: Any, threshold: float, value: float) -> QuantizedTensor:
    """threshold of the numbers, with the input's scale."""
    check_quantized("threshold", x)
    return quantized_numbers(_F.threshold(x.dequantize(), threshold, value), x._quantizer)


@kernel("dropout")
def dropout(x: Any, scale: float, zero_point: int, p: float, training: bool) -> QuantizedTensor:
    """The input with another scale. Raises NotImplementedError in training, as PyTorch has only inference."""
    if training:
        raise NotImplementedError(f"[quantized::dropout] expected training=False, got True with p={p}")
    return _result("dropout", x, lambda n: n, scale, zero_point)


@kernel("relu6")
def relu6(x: Any, inplace: bool) -> QuantizedTensor:
    """The numbers limited to 0 and 6; into the input if ``inplace``."""
    check_quantized("relu6", x)
    if not inplace:
        return wrapped(clamped(x, 0, 6), x._quantizer)
    x._ints.copy_(clamped(x, 0, 6))
    return wrapped(x._ints, x._quantizer)  # an operator does not return its argument


@kernel("clamp")
def clamp(x: Any, low: float | None, high: float | None) -> QuantizedTensor:
    """The numbers limited to a range."""
    check_quantized("clamp", x)
    return wrapped(clamped(x, low, high), x._quantizer)


@kernel("max_pool1d")
def max_pool1d(
    x: Any, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool
) -> QuantizedTensor:
    """The largest numbers of windows of the last dimension."""
    check_quantized("max_pool1d", x)
    sizes = [[1, *kernel_size], [1, *(stride or kernel_size)], [0, *padding], [1, *dilation]]
    ints = _C.ops.max_pool2d(x._ints.unsqueeze(-2), *sizes, ceil_mode).squeeze(-2)
    return wrapped(ints, x._quantizer)


@kernel("max_pool2d")
def max_pool2d(
    x: Any, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool
) -> QuantizedTensor:
    """The largest numbers of windows of the last two dimensions."""
    check_quantized("max_pool2d", x)
    sizes = [list(kernel_size), list(stride or kernel_size), list(padding), list(dilation)]
    return wrapped(_C.ops.max_pool2d(x._ints, *sizes, ceil_mode), x._quantizer)
