"""Functions of the module torch that make quantized tensors or read their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .._options import check_flags, check_layout, check_memory_format
from .._quantized_names import (
    QuantizedDType,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_tensor_affine,
    qint8,
    qint32,
    quint8,
)  # fmt: skip # isort: skip
from . import calls  # noqa: F401 - the operators on quantized tensors
from .quantizer import Quantizer, aten_name, check_quantized_dtype, check_zero_point
from .tensor import QuantizedTensor, of_bytes, wrapped

_NAMES = {_C.float16: "Half", _C.bfloat16: "BFloat16", _C.float64: "Double"}


def _check_input(input: Any, what: str) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{what}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if isinstance(input, QuantizedTensor) or input.dtype is not _C.float32:
        name = _NAMES.get(input.dtype) or str(input.dtype).removeprefix("torch.").capitalize()
        raise RuntimeError(f"Quantize only works on Float Tensor, got {name}")
    return input.detach()


def _of_tensor(parameter: Any) -> Any:
    """A parameter given as a tensor with one element, as a copy of the number that is not read."""
    if isinstance(parameter, Tensor) and parameter.numel() != 1:
        raise RuntimeError(f"[quantize_per_tensor] expected scale and zero_point with one element, got {tuple(parameter.shape)}")
    return parameter.detach().reshape([]).clone() if isinstance(parameter, Tensor) else parameter


def quantize_per_tensor(
    input: Tensor | None = None, scale: Any = None, zero_point: Any = None, dtype: Any = None, *, tensors: Any = None,
    scales: Tensor | None = None, zero_points: Tensor | None = None,
) -> Any:  # fmt: skip
    """Quantizes a float32 tensor: the integers are round(input / scale) + zero_point, limited to the dtype's range.

    Args:
        input: a tensor, or a list of tensors with as many entries of ``scale`` and ``zero_point``.
        scale: a number, or a tensor with one number, which is not read.
        zero_point: an integer, likewise.
        dtype: torch.quint8, torch.qint8, torch.qint32, torch.quint4x2 or torch.quint2x4.
        tensors, scales, zero_points: the arguments of a list, by these names.

    Raises:
        RuntimeError: the input is not float32, or the zero point is outside the dtype's range.
    """
    if tensors is not None:
        input, scale, zero_point = tensors, scales, zero_points
    dtype = check_quantized_dtype(dtype, "quantize_per_tensor")
    if isinstance(input, (list, tuple)):
        if not isinstance(scale, Tensor) or not isinstance(zero_point, Tensor) or len(scale) != len(input) != len(zero_point):
            raise RuntimeError("[quantize_per_tensor] expected a scale and a zero point per tensor, as two tensors")
        return tuple(quantize_per_tensor(t, s, z, dtype) for t, s, z in zip(input, scale, zero_point))
    input = _check_input(input, "quantize_per_tensor")
    scale, zero_point = _of_tensor(scale), _of_tensor(zero_point)
    if not isinstance(zero_point, Tensor):
        zero_point = check_zero_point(int(zero_point), dtype, "quantize_tensor_per_tensor_affine")
    quantizer = Quantizer(dtype, scale if isinstance(scale, Tensor) else float(scale), zero_point)
    return wrapped(quantizer.quantize(input), quantizer)


quantize_per_tensor.__overloads__ = (  # type: ignore[attr-defined]
    "input, scale, zero_point, dtype", "tensors, scales, zero_points, dtype",
)  # fmt: skip


def channel_quantizer(dtype: QuantizedDType, scales: Tensor, zero_points: Tensor, axis: int, dims: int) -> Quantizer:
    """The quantizer with a scale per entry of a dimension. Floating zero points are those of embeddings."""
    if scales.is_complex() or zero_points.is_complex():
        raise RuntimeError(f"expected real scales and zero points, got {scales.dtype} and {zero_points.dtype}")
    floating = zero_points.is_floating_point()
    kinds = (_C.float32, _C.float32) if floating else (_C.float64, _C.int64)
    if not 0 <= axis < dims:
        raise RuntimeError("Channel axis out of range in per channel affine quantization.")
    return Quantizer(dtype, scales.detach().to(kinds[0]).reshape(-1), zero_points.detach().to(kinds[1]).reshape(-1), axis)


def _check_channels(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, what: str) -> None:
    for name, value in (("scales", scales), ("zero_points", zero_points)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{what}(): argument '{name}' must be Tensor, not {type(value).__name__}")
    if scales.dim() != 1 or zero_points.dim() != 1:
        raise RuntimeError("scale and zero_point tensors must have dimension 1")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    if not 0 <= axis < input.dim():
        raise RuntimeError("Channel axis out of range in per channel affine quantization.")
    if scales.numel() != input.shape[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {input.shape[axis]} got, {scales.numel()}"
        )


def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any) -> QuantizedTensor:
    """Quantizes a float32 tensor with a scale and a zero point per entry of ``axis``.

    Zero points of a floating dtype make a tensor of torch.per_channel_affine_float_qparams: round(input / scale + zero_point).

    Raises:
        RuntimeError: the input is not float32, or sizes do not match.
        NotImplementedError: integers of 4 or 2 bits with zero points of an integer dtype.
    """
    dtype = check_quantized_dtype(dtype, "quantize_per_channel")
    input = _check_input(input, "quantize_per_channel")
    _check_channels(input, scales, zero_points, axis, "quantize_per_channel")
    if dtype.per_byte > 1 and not zero_points.is_floating_point():
        raise NotImplementedError(f"\"quantize_tensor_per_channel_affine\" not implemented for '{aten_name(dtype)}'")
    quantizer = channel_quantizer(dtype, scales, zero_points, axis, input.dim())
    return wrapped(quantizer.quantize(input), quantizer)


def dynamic_quantizer(input: Tensor, dtype: QuantizedDType, reduce_range: bool) -> Quantizer:
    """The quantizer for the range of a tensor's elements, as numbers that the engine computes."""
    low, high = dtype.limits
    if reduce_range:
        low, high = int(low / 2), high // 2
    scale, zero_point = _C.ops.choose_quantization_params(input, low, high)
    return Quantizer(dtype, scale, zero_point)


def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: bool) -> QuantizedTensor:
    """Quantizes a float32 tensor with the scale and zero point for its range, which the engine chooses; does not wait.

    Args:
        dtype: torch.quint8 or torch.qint8.
        reduce_range: whether to use half of the integers.
    """
    dtype = check_quantized_dtype(dtype, "quantize_per_tensor_dynamic")
    if dtype not in (quint8, qint8):
        raise RuntimeError(f"dtype {dtype!r} not supported")
    input = _check_input(input, "quantize_per_tensor_dynamic")
    quantizer = dynamic_quantizer(input, dtype, reduce_range)
    return wrapped(quantizer.quantize(input), quantizer)


def _of_ints(input: Tensor) -> QuantizedDType:
    found = {kind.stored: kind for kind in (quint8, qint8, qint32)}.get(input.dtype)
    if found is None:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return found


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """The quantized tensor with a copy of these integers: uint8, int8 or int32."""
    dtype = _of_ints(input)
    zero_point = check_zero_point(int(zero_point), dtype, "quantize_tensor_per_tensor_affine")
    return wrapped(input.detach().clone(), Quantizer(dtype, float(scale), zero_point))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> QuantizedTensor:
    """The quantized tensor with a copy of these integers, and a scale and zero point per entry of ``axis``."""
    dtype = _of_ints(input)
    _check_channels(input, scale, zero_point, axis, "_make_per_channel_quantized_tensor")
    return wrapped(input.detach().clone(), channel_quantizer(dtype, scale, zero_point, axis, input.dim()))


def _empty(size: Sequence[int], dtype: Any, device: Any, quantizer: Quantizer) -> QuantizedTensor:
    ints = _C.torch.empty(tuple(size), dtype=check_quantized_dtype(dtype, "empty_quantized").stored, device=device)
    return wrapped(ints, quantizer)


def _empty_affine_quantized(
    *size: Any, scale: float = 1, zero_point: int = 0, dtype: Any = None, device: Any = None
) -> QuantizedTensor:
    """A quantized tensor whose integers are not set."""
    sizes = size[0] if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    dtype = check_quantized_dtype(dtype, "_empty_affine_quantized")
    return _empty(sizes, dtype, device, Quantizer(dtype, float(scale), int(zero_point)))


def _empty_per_channel_affine_quantized(
    size: Sequence[int], *, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any = None, device: Any = None
) -> QuantizedTensor:
    """A quantized tensor with a scale per entry of ``axis``, whose integers are not set."""
    dtype = check_quantized_dtype(dtype, "_empty_per_channel_affine_quantized")
    return _empty(size, dtype, device, channel_quantizer(dtype, scales, zero_points, axis, len(size)))


def empty_quantized(
    size: Sequence[int], qtensor: Tensor, *, memory_format: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> QuantizedTensor:  # fmt: skip
    """A tensor with the quantizer of ``qtensor``, whose integers are not set."""
    check_layout("empty_quantized", layout)
    check_memory_format("empty_quantized", memory_format)
    check_flags("empty_quantized", pin_memory=pin_memory)
    if requires_grad:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if not isinstance(qtensor, QuantizedTensor):
        raise RuntimeError("empty_quantized expected a quantized tensor")
    if dtype is not None and dtype is not qtensor.dtype:
        raise RuntimeError(f"[empty_quantized] expected the dtype of qtensor, {qtensor.dtype}, got {dtype}")
    return _empty(size, qtensor.dtype, device or qtensor.device, qtensor._quantizer)


def dequantize(input: Tensor | None = None, *, tensors: Any = None) -> Any:
    """The values of a tensor as float32, or those of each tensor of a list, which may be passed as ``tensors``."""
    if (input is None) == (tensors is None):
        raise TypeError("dequantize() expected a tensor or a list of tensors")
    given = tensors if input is None else input
    return given.dequantize() if isinstance(given, Tensor) else tuple(t.dequantize() for t in given)


dequantize.__overloads__ = ("input", "tensors")  # type: ignore[attr-defined]


def int_repr(input: Tensor) -> Tensor:
    """A copy of a quantized tensor's integers."""
    return input.int_repr()


def q_scale(input: Tensor) -> float:
    """The scale of a tensor with one scale."""
    return input.q_scale()


def q_zero_point(input: Tensor) -> int:
    """The zero point of a tensor with one scale."""
    return input.q_zero_point()


def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scales of a tensor with a scale per channel."""
    return input.q_per_channel_scales()


def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero points of a tensor with a scale per channel."""
    return input.q_per_channel_zero_points()


def q_per_channel_axis(input: Tensor) -> int:
    """The dimension of the scales of a tensor with a scale per channel."""
    return input.q_per_channel_axis()


def of_parameters(ints: Tensor, parameters: tuple) -> QuantizedTensor:
    """The tensor of a file: integers and (scheme, scale, zero point[, axis])."""
    return wrapped(ints, _quantizer_of(_of_ints(ints), parameters, ints.dim()))


def of_packed_parameters(packed: Tensor, dtype: QuantizedDType, shape: tuple, parameters: tuple) -> QuantizedTensor:
    """The tensor of a file with integers of 4 or 2 bits, whose bytes may be followed by others."""
    count = 1
    for size in shape:
        count *= size
    needed = -(-count // dtype.per_byte)
    if packed.numel() < needed:
        raise RuntimeError(f"expected {needed} bytes of integers, got {packed.numel()}")
    return of_bytes(packed[:needed].clone(), shape, _quantizer_of(dtype, parameters, len(shape)))


def _quantizer_of(dtype: QuantizedDType, parameters: tuple, dims: int) -> Quantizer:
    scheme = parameters[0]
    if scheme == per_tensor_affine and len(parameters) == 3:
        return Quantizer(dtype, float(parameters[1]), int(parameters[2]))
    if scheme not in (per_channel_affine, per_channel_affine_float_qparams) or len(parameters) != 4:
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {scheme}")
    return channel_quantizer(dtype, *parameters[1:], dims)
