"""torchao.quantization.quant_primitives: scales and zero points of blocks of a tensor, and their quantization.

A block is ``block_size`` elements in each dimension; all elements of a block share a scale and a zero point, which have one
element per block, in the order of the blocks.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ... import _C, _small_integers
from ..._C import Tensor
from ..._functions import finfo
from ..._grad_mode import no_grad
from ...autograd import Function

__all__ = [
    "MappingType", "TorchAODType", "ZeroPointDomain", "choose_qparams_affine", "choose_qparams_affine_with_min_max",
    "dequantize_affine", "quantize_affine",
]  # fmt: skip

_LIMITS: dict[Any, tuple] = {
    _C.uint8: (0, 255), _C.int8: (-128, 127), _C.int16: (-(2**15), 2**15 - 1), _C.int32: (-(2**31), 2**31 - 1),
}  # fmt: skip
_FLOATS = (_C.float32, _C.float16, _C.bfloat16)
_FLOAT8 = (_C.float8_e4m3fn, _C.float8_e5m2)


class MappingType(enum.Enum):
    """How floating-point numbers are mapped to integers: whether 0 is in the middle of the range."""

    SYMMETRIC = enum.auto()
    SYMMETRIC_NO_CLIPPING_ERR = enum.auto()
    ASYMMETRIC = enum.auto()


class ZeroPointDomain(enum.Enum):
    """The domain of zero points: integers or floating-point numbers."""

    INT = enum.auto()
    FLOAT = enum.auto()
    NONE = enum.auto()


class TorchAODType:
    """torchao's older names of torch.int1 to torch.int7."""

    INT1, INT2, INT3, INT4, INT5, INT6, INT7 = (getattr(_small_integers, f"int{n}") for n in range(1, 8))


def limits(dtype: Any, quant_min: float | None = None, quant_max: float | None = None) -> tuple[Any, Any]:
    """The smallest and largest number of a dtype, or those given.

    Raises:
        ValueError: the dtype is not one of quantized values.
        AssertionError: the given numbers are not in the dtype's range.
    """
    if dtype in _FLOAT8:
        lowest, highest = finfo(dtype).min, finfo(dtype).max
    elif isinstance(dtype, _small_integers.SmallIntegerDType):
        lowest, highest = dtype.limits
    elif dtype in _LIMITS:
        lowest, highest = _LIMITS[dtype]
    else:
        raise ValueError(f"Unsupported dtype: {dtype}")
    quant_min, quant_max = lowest if quant_min is None else quant_min, highest if quant_max is None else quant_max
    if quant_min < lowest:
        raise AssertionError(f"quant_min out of bound for dtype, quant_min_lower_bound: {lowest} quant_min: {quant_min}")
    if quant_max > highest:
        raise AssertionError(f"quant_max out of bound for dtype, quant_max_upper_bound: {highest} quant_max: {quant_max}")
    return quant_min, quant_max


def stored_dtype(dtype: Any) -> Any:
    """The dtype of tensors that hold values of a dtype below 8 bits."""
    if isinstance(dtype, _small_integers.SmallIntegerDType):
        return _C.int8 if dtype.is_signed else _C.uint8
    return dtype


def _blocks(block_size: Sequence[int], shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """The shape with each divided dimension as two, and the dimensions inside blocks."""
    if len(block_size) != len(shape):
        raise AssertionError(f"Got input dim:{len(shape)}, block_size: {tuple(block_size)}")
    sizes: list[int] = []
    inside: list[int] = []
    for i, (block, size) in enumerate(zip(block_size, shape, strict=True)):
        if block < 1 or size % block:
            raise AssertionError(
                f"Expecting input size at {i} dimension: {size} to be divisible by block_size at {i} dimension: {block}"
            )
        if 1 < block != size:
            sizes += [size // block, block]
            inside.append(len(sizes) - 1)
        else:
            sizes.append(size)
            if block != 1:
                inside.append(len(sizes) - 1)
    return sizes, inside


def _per_block(values: Tensor, sizes: list[int], inside: list[int]) -> Tensor:
    return values.reshape([1 if i in inside else n for i, n in enumerate(sizes)])


def _parameters(
    low: Tensor, high: Tensor, mapping_type: MappingType, quant_min: float, quant_max: float, eps: float
) -> tuple[Tensor, Tensor]:
    """(scale, zero point) of ranges that include 0."""
    low, high = low.clamp(max=0), high.clamp(min=0)
    if mapping_type == MappingType.ASYMMETRIC:
        scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
        return scale, (quant_min - (low / scale).round()).clamp(quant_min, quant_max)
    if mapping_type == MappingType.SYMMETRIC:
        scale = _C.torch.maximum(-low, high) / (float(quant_max - quant_min) / 2)
    elif mapping_type == MappingType.SYMMETRIC_NO_CLIPPING_ERR:
        scale = _C.torch.maximum(low / float(quant_min), high / float(quant_max))
    else:
        raise AssertionError(f"Unsupported mapping type: {mapping_type}")
    return scale.clamp(min=eps), _C.torch.full_like(scale, int((quant_max + quant_min + 1) / 2))


@no_grad()
def choose_qparams_affine(
    input: Tensor, mapping_type: MappingType, block_size: Sequence[int], target_dtype: Any, quant_min: float | None = None,
    quant_max: float | None = None, eps: float | None = None, scale_dtype: Any = None, zero_point_dtype: Any = _C.int32,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(scale, zero point) of each block of a tensor.

    Args:
        mapping_type: whether 0 is in the middle of the range.
        target_dtype: of the quantized values; quant_min, quant_max: their range, by default the dtype's.
        eps: the smallest scale, by default the smallest normal number of the input's dtype.
        keepdim: the results have the input's number of dimensions.
    """
    quant_min, quant_max = limits(target_dtype, quant_min, quant_max)
    sizes, inside = _blocks(block_size, input.shape)
    grouped = input.reshape(sizes)
    low, high = (grouped.amin(inside), grouped.amax(inside)) if inside else (grouped, grouped)
    eps = finfo(input.dtype).smallest_normal if eps is None else eps
    scale, point = _parameters(low, high, mapping_type, quant_min, quant_max, eps)
    if keepdim:
        shape = [n // b for n, b in zip(input.shape, block_size, strict=True)]
        scale, point = scale.reshape(shape), point.reshape(shape)
    return scale.to(scale_dtype or input.dtype), point.to(zero_point_dtype or _C.int32)


@no_grad()
def choose_qparams_affine_with_min_max(
    min_val: Tensor, max_val: Tensor, mapping_type: MappingType, block_size: Sequence[int], target_dtype: Any,
    quant_min: int | None = None, quant_max: int | None = None, eps: float | None = None, scale_dtype: Any = None,
    zero_point_dtype: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(scale, zero point) of ranges that were observed, one per block.

    Raises:
        AssertionError: the ranges have different dtypes, or a block size is not positive.
    """
    if min_val is None or max_val is None or min_val.dtype != max_val.dtype:
        raise AssertionError("Expecting `min_val` and `max_val` to have the same dtype")
    if any(n < 1 for n in block_size):
        raise AssertionError(f"expected positive block sizes, got {tuple(block_size)}")
    quant_min, quant_max = limits(target_dtype, quant_min, quant_max)
    eps = finfo(min_val.dtype).smallest_normal if eps is None else eps
    scale, point = _parameters(min_val, max_val, mapping_type, quant_min, quant_max, eps)
    return scale.to(scale_dtype or min_val.dtype), point.to(zero_point_dtype or _C.int32)


@no_grad()
def choose_qparams_affine_tinygemm(
    input: Tensor, block_size: Sequence[int], quant_min: int = 0, quant_max: int = 15, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """(scale, zero point) of each block, where the zero point is the number in the middle of the range, as a float."""
    sizes, inside = _blocks(block_size, input.shape)
    grouped = input.reshape(sizes)
    low, high = grouped.amin(inside), grouped.amax(inside)
    eps = finfo(input.dtype).smallest_normal if eps is None else eps
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    return scale, low + scale * ((quant_max + quant_min + 1) / 2)


@no_grad()
def quantize_affine_tinygemm(
    input: Tensor, block_size: Sequence[int], scale: Tensor, zero_point: Tensor, quant_min: int = 0, quant_max: int = 15
) -> Tensor:
    """Integers (uint8) of a tensor with the scale and zero point of choose_qparams_affine_tinygemm()."""
    sizes, inside = _blocks(block_size, input.shape)
    scale, zero_point = _per_block(scale, sizes, inside), _per_block(zero_point, sizes, inside)
    middle = (quant_max + quant_min + 1) / 2
    lowest = zero_point - scale * middle
    values = ((input.reshape(sizes) - lowest) / scale).round().clamp(quant_min, quant_max)
    return values.reshape(input.shape).to(_C.uint8)


@no_grad()
def quantize_affine(
    input: Tensor, block_size: Sequence[int], scale: Tensor, zero_point: Tensor | None, output_dtype: Any,
    quant_min: float | None = None, quant_max: float | None = None,
) -> Tensor:  # fmt: skip
    """``round(input / scale) + zero_point`` as integers of a dtype, clamped to a range.

    Raises:
        AssertionError: the input is not floating-point, or its sizes are not multiples of the block's.
    """
    quant_min, quant_max = limits(output_dtype, quant_min, quant_max)
    if input.dtype not in _FLOATS:
        raise AssertionError(f"Unsupported input dtype: {input.dtype}")
    sizes, inside = _blocks(block_size, input.shape)
    values = (input.reshape(sizes) * (1.0 / _per_block(scale, sizes, inside))).round()
    if zero_point is not None and zero_point.numel():
        values = values + _per_block(zero_point, sizes, inside)
    return values.clamp(quant_min, quant_max).reshape(input.shape).to(stored_dtype(output_dtype))


@no_grad()
def dequantize_affine(
    input: Tensor, block_size: Sequence[int], scale: Tensor, zero_point: Tensor | None, input_dtype: Any,
    quant_min: float | None = None, quant_max: float | None = None, *, output_dtype: Any = _C.float32,
) -> Tensor:  # fmt: skip
    """``(input - zero_point) * scale``.

    Raises:
        AssertionError: the input does not have the dtype, or the output dtype is not floating-point.
    """
    limits(input_dtype, quant_min, quant_max)
    if input.dtype != stored_dtype(input_dtype):
        raise AssertionError(f"Expected: {input_dtype}, got: {input.dtype}")
    if output_dtype not in _FLOATS:
        raise AssertionError(f"Unsupported output dtype: {output_dtype}")
    sizes, inside = _blocks(block_size, input.shape)
    values = input.reshape(sizes).to(output_dtype)
    if zero_point is not None:
        values = values - _per_block(zero_point, sizes, inside).to(output_dtype)
    return (values * _per_block(scale, sizes, inside)).reshape(input.shape).to(output_dtype)


class _Rounded(Function):
    """round(), whose gradient is that of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def rounded(x: Tensor) -> Tensor:
    """round(), whose gradient is that of the identity."""
    return _Rounded.apply(x)


def bits_of(dtype: Any) -> int | None:
    """The bits of an integer dtype of at most 8; None for others."""
    if isinstance(dtype, _small_integers.SmallIntegerDType):
        return (dtype.limits[1] - dtype.limits[0]).bit_length()
    return 8 if dtype in (_C.int8, _C.uint8) else None


def fake_quantize_affine(
    input: Tensor, block_size: Sequence[int], scale: Tensor, zero_point: Tensor | None, quant_min: int, quant_max: int,
    zero_point_domain: ZeroPointDomain = ZeroPointDomain.INT,
) -> Tensor:  # fmt: skip
    """The numbers that the integers of a tensor represent, in the tensor's dtype. Has gradients, also of scales and zero points.

    Args:
        zero_point_domain: FLOAT for the zero points of choose_qparams_affine_tinygemm(); NONE: there are none.
    """
    sizes, inside = _blocks(block_size, input.shape)
    x, scale = input.reshape(sizes), _per_block(scale, sizes, inside)
    point = None if zero_point is None or zero_point_domain is ZeroPointDomain.NONE else _per_block(zero_point, sizes, inside)
    if zero_point_domain is ZeroPointDomain.FLOAT:
        middle = (quant_max + quant_min + 1) / 2
        ints = rounded((x - (point - scale * middle)) / scale).clamp(quant_min, quant_max)
        numbers = (ints - middle).to(input.dtype) * scale + point
    else:
        ints = rounded(x * (1.0 / scale))
        ints = (ints if point is None else ints + point).clamp(quant_min, quant_max).to(input.dtype)
        numbers = (ints if point is None else ints - point.to(input.dtype)) * scale
    return numbers.reshape(input.shape).to(input.dtype)


def float8_scale(input: Tensor, block_size: Sequence[int], dtype: Any, lowest: float | None = None, highest: float | None = None) -> Tensor:
    """The scales (float32) with which each block's largest value becomes the largest value of a float8 dtype.

    Args:
        lowest, highest: limits of the largest value.
    """
    sizes, inside = _blocks(block_size, input.shape)
    largest = input.reshape(sizes).abs()
    largest = largest.amax(inside) if inside else largest
    if lowest is not None or highest is not None:
        largest = largest.clamp(min=lowest, max=highest)
    shape = [n // b for n, b in zip(input.shape, block_size, strict=True)]
    return (largest / finfo(dtype).max).reshape(shape).to(_C.float32)


def _per_element(scale: Tensor, block_size: Sequence[int]) -> Tensor:
    for dim, (block, count) in enumerate(zip(block_size, scale.shape, strict=True)):
        if block > 1 and count > 1:
            scale = scale.repeat_interleave(block, dim=dim)
    return scale


def quantize_float8(input: Tensor, scale: Tensor, block_size: Sequence[int], dtype: Any) -> Tensor:
    """``input / scale`` in a float8 dtype."""
    largest = finfo(dtype).max
    return (input.to(_C.float32) / _per_element(scale, block_size)).clamp(-largest, largest).to(dtype)


def dequantize_float8(input: Tensor, scale: Tensor, block_size: Sequence[int], output_dtype: Any) -> Tensor:
    """``input * scale``."""
    return (input.to(_C.float32) * _per_element(scale, block_size)).to(output_dtype)
