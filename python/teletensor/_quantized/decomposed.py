"""torch.ops.quantized_decomposed: quantization of plain tensors, with parameters as arguments.

Graphs of quantized programs contain these operators. Parameters that are tensors are not read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._library import registry
from .._library.custom_op import COMPOSED
from .._library.schema import parse
from .quantizer import single

_NAMESPACE = "quantized_decomposed"
_HALVES = (_C.float16, _C.bfloat16)
# The smallest and largest number of the dtypes that quantized numbers are stored in.
BOUNDS = {
    _C.uint8: (0, 255), _C.int8: (-128, 127), _C.uint16: (0, 2**16 - 1), _C.int16: (-(2**15), 2**15 - 1),
    _C.int32: (-(2**31), 2**31 - 1), _C.float8_e5m2: (-57344, 57344), _C.float8_e4m3fn: (-448, 448),
}  # fmt: skip
_BYTES = (_C.uint8, _C.int8)


def _require(condition: bool, message: str) -> None:
    """Raises AssertionError, as PyTorch's operators do."""
    if not condition:
        raise AssertionError(message)


def _operator(schema: str, key: str = "CompositeExplicitAutograd") -> Callable[[Callable], Callable]:
    """Defines an operator of the namespace whose kernel is the function. Only .tensor2 reads values of its arguments."""

    def decorate(function: Callable) -> Callable:
        if ".tensor2(" not in schema:
            setattr(function, COMPOSED, True)
        registry.define(parse(f"{_NAMESPACE}::{schema}")).kernels[key] = function
        return function

    return decorate


def _check_bounds(quant_min: int, quant_max: int, dtype: Any) -> None:
    if dtype not in BOUNDS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = BOUNDS[dtype]
    _require(quant_min >= low, f"quant_min out of bounds for dtype, quant_min_lower_bound: {low} quant_min: {quant_min}")
    _require(quant_max <= high, f"quant_max out of bounds for dtype, quant_max_upper_bound: {high} quant_max: {quant_max}")


def _single(input: Tensor) -> Tensor:
    """The input as float32, from which alone numbers are quantized."""
    input = input.to(_C.float32) if input.dtype in _HALVES else input
    _require(input.dtype is _C.float32, f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    return input


def _quantized(input: Tensor, inverse: Any, zero_point: Any, low: int, high: int, dtype: Any) -> Tensor:
    """clamp(round(input * inverse) + zero_point) as the dtype."""
    wide = isinstance(inverse, Tensor) and inverse.dtype is _C.float64 and inverse.dim() > 0  # computed in float64
    if wide or dtype not in (*_BYTES, _C.int16, _C.uint16) or low > high:
        return ((input * inverse).round() + zero_point).clamp(low, high).to(dtype)
    return _C.ops.quantize_affine(input, inverse, zero_point, low, high, BOUNDS[dtype][0] < 0).to(dtype)


def _one(parameter: Tensor, name: str) -> Tensor:
    _require(parameter.numel() == 1, f"Expecting {name} tensor to be one element, but received : {parameter.numel()}")
    return parameter.reshape([])


@_operator("quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: Any) -> Tensor:
    """The integers round(input / scale) + zero_point between the limits.

    Raises:
        AssertionError: the input is not float32, float16 or bfloat16, or the dtype does not have the limits.
    """
    input = _single(input)
    _check_bounds(quant_min, quant_max, dtype)
    return _quantized(input, single(1.0 / scale), zero_point, quant_min, quant_max, dtype)


@_operator("quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor")  # noqa: E501
def quantize_per_tensor_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """The same with tensors of one element as scale and zero point."""
    zero_point, scale = _one(zero_point, "zero_point"), _one(scale, "scale")
    input = _single(input)
    _check_bounds(quant_min, quant_max, dtype)
    return _quantized(input, (1.0 / scale.to(_C.float64)).to(_C.float32), zero_point, quant_min, quant_max, dtype)


@_operator("quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor")  # noqa: E501
def quantize_per_tensor_tensor2(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Tensor, quant_max: Tensor, dtype: Any
) -> Tensor:
    """The same with tensors as limits too, which are read."""
    return quantize_per_tensor_tensor(input, scale, zero_point, int(quant_min.item()), int(quant_max.item()), dtype)


def _numbers(input: Tensor, scale: Any, zero_point: Any, dtype: Any, out_dtype: Any) -> Tensor:
    """(input - zero_point) * scale, computed in out_dtype."""
    _require(input.dtype is dtype, f"Expecting input to have dtype: {dtype}, but got {input.dtype}")
    if dtype not in BOUNDS:
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    if out_dtype in (None, _C.float32) and dtype in (*_BYTES, _C.int16, _C.uint16):
        return _C.ops.dequantize_affine(input, scale, zero_point)
    return (input.to(out_dtype or _C.float32) - zero_point) * scale


@_operator("dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")  # noqa: E501
def dequantize_per_tensor(
    input: Tensor, scale: float, zero_point: int, _quant_min: int, _quant_max: int, dtype: Any, *, out_dtype: Any = None
) -> Tensor:
    """The numbers that integers represent. The limits describe the input, which does not depend on them."""
    return _numbers(input, scale, zero_point, dtype, out_dtype)


@_operator("dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")  # noqa: E501
def dequantize_per_tensor_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, _quant_min: int, _quant_max: int, dtype: Any, *, out_dtype: Any = None
) -> Tensor:
    """The same with tensors of one element as scale and zero point."""
    return _numbers(input, _one(scale, "scale"), _one(zero_point, "zero_point"), dtype, out_dtype)


@_operator("dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")  # noqa: E501
def dequantize_per_tensor_tensor2(
    input: Tensor, scale: Tensor, zero_point: Tensor, _quant_min: Tensor, _quant_max: Tensor, dtype: Any, *, out_dtype: Any = None
) -> Tensor:
    """The same with tensors as limits too."""
    return _numbers(input, _one(scale, "scale"), _one(zero_point, "zero_point"), dtype, out_dtype)


def _range(input: Tensor, quant_min: int, quant_max: int, dtype: Any) -> tuple[Tensor, Tensor]:
    """The input's smallest number or 0, and its largest number or 0."""
    kinds = (_C.float32, *_HALVES)
    _require(input.dtype in kinds, f"Expecting input to have dtype torch.float32/16/b16, but got dtype: {input.dtype}")
    _require(dtype in BOUNDS, f"Expecting target dtype to be one of {list(BOUNDS)}, but got: {dtype}")
    _require(quant_min <= 0 <= quant_max, "Used-specified quantization range must include 0.")
    _require(quant_min < quant_max, "qmin must be less than qmax for user-specified quantization range.")
    low, high = _C.torch.aminmax(input.detach())
    return low.clamp(max=0), high.clamp(min=0)


def _result(scale: Tensor, zero_point: Tensor) -> tuple[Tensor, Tensor]:
    return scale.reshape([1]).to(_C.float64), zero_point.reshape([1]).to(_C.int64)


@_operator("choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any) -> tuple[Tensor, Tensor]:
    """The scale (float64, at least ``eps``) and zero point (int64) for the range of the input. Both have the sizes [1]."""
    low, high = _range(input, quant_min, quant_max, dtype)
    scale = ((high - low) / float(quant_max - quant_min)).to(_C.float32).clamp(min=single(eps))
    zero_point = (quant_min - (low / scale).round().to(_C.int32)).clamp(quant_min, quant_max)
    return _result(scale, zero_point)


@_operator("choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)")  # noqa: E501
def choose_qparams_symmetric(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any) -> tuple[Tensor, Tensor]:
    """The same with the zero point 0, or 128 for uint8."""
    low, high = _range(input, quant_min, quant_max, dtype)
    scale = _C.torch.maximum(-low, high) / (float(quant_max - quant_min) / 2)
    scale = scale.to(_C.float32).clamp(min=single(eps))
    return _result(scale, _C.torch.full_like(scale, 128 if dtype is _C.uint8 else 0))


def _along(parameter: Tensor, axis: int, dims: int) -> Tensor:
    return parameter.reshape([-1 if d == axis else 1 for d in range(dims)])


def _axis(axis: int, dims: int) -> int:
    _require(axis < dims, f"Expecting axis to be < {dims}")
    return axis % dims


@_operator("quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor")  # noqa: E501
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """The integers round(input / scale) + zero_point, with a scale and zero point per entry of ``axis``."""
    input = _single(input)
    axis = _axis(axis, input.dim())
    _check_bounds(quant_min, quant_max, dtype)
    inverse = 1.0 / _along(scales, axis, input.dim())
    return _quantized(input, inverse, _along(zero_points, axis, input.dim()), quant_min, quant_max, dtype)


@_operator("dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")  # noqa: E501
def dequantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, quant_min: int, quant_max: int, dtype: Any, *,
    out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The numbers that integers represent, with a scale and zero point per entry of ``axis``; no zero points mean 0."""
    _require(input.dtype is dtype, f"Expecting input to have dtype: {dtype}, but got dtype: {input.dtype}")
    axis = _axis(axis, input.dim())
    _check_bounds(quant_min, quant_max, dtype)
    scales = _along(scales, axis, input.dim())
    points = 0 if zero_points is None else _along(zero_points, axis, input.dim())
    whole = zero_points is None or zero_points.dtype in (_C.int32, _C.int64)
    if scales.dtype is _C.float32 and dtype in (*_BYTES, _C.int16) and whole:
        result = _C.ops.dequantize_affine(input, scales, points)
    else:
        result = (input if zero_points is None else input - points) * scales
    return result.to(out_dtype or _C.float32)


@_operator("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Scales for int8 with zero points 0, one per row of the last dimension, which has one element in the results."""
    scales = input.abs().amax(dim=-1, keepdim=True)
    scales = scales.to(_C.float32) if scales.dtype is _C.float16 else scales
    if dtype is not _C.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")  # noqa: TRY002 - PyTorch's
    scales = scales.clamp(min=1e-5).div(127)
    return scales, _C.torch.zeros_like(scales)


@_operator("_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", "CompositeImplicitAutograd")
@_operator("choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Scales (float64) and zero points (int64) for integers from -128 to 127, one per row of the last dimension."""
    if dtype not in BOUNDS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = -128, 127
    least = input.amin(dim=-1, keepdim=True).clamp(max=0)
    greatest = input.amax(dim=-1, keepdim=True).clamp(min=0)
    scale = ((greatest - least) / float(high - low)).clamp(min=2.0**-23)
    below, above = least / scale, greatest / scale
    zero_point = _C.torch.where(low + below + (high + above) > 0, low - below, high - above)
    return scale.to(_C.float64), zero_point.clamp(low, high).round().to(_C.int64)


def _check_tokens(input: Tensor, scales: Tensor, zero_points: Tensor) -> None:
    tokens = math.prod(input.shape[:-1])
    _require(tokens == scales.numel(), f"num_tokens: {tokens} scales: {scales.shape}")
    _require(tokens == zero_points.numel(), f"num_tokens: {tokens} zero_points: {zero_points.shape}")


@_operator("quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """The integers round(input / scale + zero_point), with a scale and zero point per row of the last dimension."""
    _check_bounds(quant_min, quant_max, dtype)
    _check_tokens(input, scales, zero_points)
    return input.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max).to(dtype)


@_operator("dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor")  # noqa: E501
def dequantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, output_dtype: Any
) -> Tensor:
    """(input - zero_point) * scale, with a scale and zero point per row of the last dimension."""
    _check_bounds(quant_min, quant_max, dtype)
    return ((input - zero_points) * scales).to(output_dtype)


def _group(input: Tensor, scales: Tensor, group_size: int, name: str) -> int:
    """The size of a group: that of a row if there is one group."""
    _require(group_size > 1, "group_size must be > 1")
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    _require(input.shape[-1] % group_size == 0, f"{name}.shape[-1] must be divisible by group_size")
    _require(input.dim() == 2, f"{name} must be 2-dimensional")
    return group_size


@_operator("quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor")  # noqa: E501
def quantize_per_channel_group(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, group_size: int = 128
) -> Tensor:
    """The integers of a matrix with a scale and zero point per group of ``group_size`` elements of a row."""
    group_size = _group(input, scales, group_size, "input")
    groups = input.reshape(-1, group_size)
    scaled = groups.mul(1.0 / scales.reshape(-1, 1)).add(zero_points.reshape(-1, 1))
    return scaled.round().clamp(quant_min, quant_max).to(dtype).reshape(input.shape)


@_operator("dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor")  # noqa: E501
def dequantize_per_channel_group(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, _quant_min: int, _quant_max: int, _dtype: Any, group_size: int = 128,
    output_dtype: Any = _C.float32,
) -> Tensor:  # fmt: skip
    """The numbers of a matrix of integers with a scale per group of ``group_size`` elements of a row."""
    group_size = _group(input, scales, group_size, "w_int8")
    groups = input.reshape(-1, group_size)
    points = 0 if zero_points is None else zero_points.reshape(-1, 1)
    return ((groups - points) * scales.reshape(-1, 1)).reshape(input.shape).to(output_dtype)


@_operator("fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor", "Autograd")  # noqa: E501
def fake_quant_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """The numbers that the integers of quantize_per_channel represent; the gradient is that of the identity within the limits."""
    _require(input.dtype is _C.float32, f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    axis = _axis(axis, input.dim())
    scales, points = _along(scales.to(_C.float32), axis, input.dim()), _along(zero_points.to(_C.int32), axis, input.dim())
    return _C.ops.fake_quantize_affine(input, scales.detach(), points, quant_min, quant_max)


@_operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input: Tensor, dtype: Any) -> Tensor:
    """Converts to another dtype."""
    return input.to(dtype)
