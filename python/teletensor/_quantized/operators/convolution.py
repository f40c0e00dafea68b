"""Convolutions of torch.ops.quantized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._layouts import channels_last, channels_last_3d
from ..._quantized_names import quint8
from ..create import dynamic_quantizer
from ..define import kernel
from ..packed import ConvPackedParams
from ..quantizer import Quantizer
from ..tensor import QuantizedTensor, wrapped
from .arithmetic import centered, check_quantized, quantized_numbers
from .linear import factors, output_arguments

_TRANSPOSED = {1: _C.ops.conv_transpose1d, 2: _C.ops.conv_transpose2d, 3: _C.ops.conv_transpose3d}


def _checked(name: str, packed: Any, space: int) -> ConvPackedParams:
    if not isinstance(packed, ConvPackedParams) or packed._space != space:
        raise RuntimeError(f"[quantized::{name}] expected weights of conv{space}d_prepack, got {type(packed).__name__}")
    return packed


def _by_channel(numbers: Tensor, space: int) -> Tensor:
    """Numbers per channel in a shape that broadcasts to (batch, channels, space)."""
    return numbers.reshape([-1, *[1] * space])


def _transposed_sums(x: QuantizedTensor, packed: ConvPackedParams) -> Tensor:
    """The exact integer sums of a transposed convolution, computed in float64."""
    weight = packed._weight
    w = weight.ints.to(_C.float64)
    points = weight.zero_points
    w = w - (points.reshape([1, -1, *[1] * packed._space]) if isinstance(points, Tensor) else points)
    stride, padding, output_padding, dilation = packed._lists
    call = _TRANSPOSED[packed._space]
    return call(centered(x).to(_C.float64), w, None, stride, padding, output_padding, packed._groups, dilation).to(_C.int32)


def _check_dims(name: str, x: QuantizedTensor, packed: ConvPackedParams) -> None:
    dims = packed._space + 2
    if x.dim() != dims:
        raise RuntimeError(f"Expected activation data tensor to have {dims} dimension(s), got {x.dim()} in quantized::{name}")


def _operands(x: QuantizedTensor, packed: ConvPackedParams) -> tuple:
    """The operands of an integer convolution. One-dimensional ones have a height of 1, so that channels can be last."""
    weight = packed._weight
    stride, padding, _, dilation = packed._lists
    ints, filters = x._ints, weight.ints
    if packed._space == 1:
        ints, filters = ints.unsqueeze(-2), filters.unsqueeze(-2)
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    ints = ints.contiguous(memory_format=channels_last_3d if packed._space == 3 else channels_last)
    return ints, filters, x._quantizer.zero_point, weight.zero_points, stride, padding, dilation, packed._groups


def _sums(name: str, x: QuantizedTensor, packed: ConvPackedParams) -> tuple[Tensor, Tensor, Tensor | None]:
    """The integer sums, their scales and the bias, both in a shape that broadcasts to the sums."""
    _check_dims(name, x, packed)
    space, weight = packed._space, packed._weight
    scales = factors(x._quantizer, weight.scales)
    if packed._transpose:
        sums = _transposed_sums(x, packed)
        scales = scales.repeat(packed._groups) if scales.numel() > 1 else scales
    else:
        sums = _C.ops.int8_convolution(*_operands(x, packed))
        sums = sums.squeeze(-2) if space == 1 else sums
    bias = None if packed._bias is None else _by_channel(packed._bias, space)
    return sums, scales if scales.numel() == 1 else _by_channel(scales, space), bias


def _quantized(name: str, x: QuantizedTensor, packed: ConvPackedParams, quantizer: Quantizer, relu: bool) -> QuantizedTensor:
    """A convolution whose sums the engine requantizes, with its channels last in memory, as PyTorch's."""
    _check_dims(name, x, packed)
    scales = factors(x._quantizer, packed._weight.scales)
    parameters = output_arguments(quantizer, relu)
    ints = _C.ops.int8_convolution_quantized(*_operands(x, packed), scales, packed._bias, *parameters)
    return wrapped(ints.squeeze(-2) if packed._space == 1 else ints, quantizer)


def _channels_last(result: QuantizedTensor, space: int) -> QuantizedTensor:
    """The result with its channels last in memory, as PyTorch's, which later averages round accordingly."""
    ints = result._ints if space > 1 else result._ints.unsqueeze(-2)
    ints = ints.contiguous(memory_format=channels_last_3d if space == 3 else channels_last)
    return wrapped(ints if space > 1 else ints.squeeze(-2), result._quantizer)


def _convolve(name: str, space: int, relu: bool) -> Callable:
    def convolve(x: Any, packed: Any, scale: float, zero_point: int) -> QuantizedTensor:
        check_quantized(name, x)
        packed, quantizer = _checked(name, packed, space), Quantizer(x.dtype, scale, zero_point)
        if not packed._transpose:
            return _quantized(name, x, packed, quantizer, relu)
        sums, scales, bias = _sums(name, x, packed)
        ints = _C.ops.requantize(sums, scales, 0.0 if bias is None else bias, *output_arguments(quantizer, relu))
        return _channels_last(wrapped(ints, quantizer), space)

    return convolve


def _with_parameters(name: str, space: int, relu: bool) -> Callable:
    def convolve(
        x: Any, packed: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int, scale: float,
        zero_point: int,
    ) -> QuantizedTensor:  # fmt: skip
        packed = _checked(name, packed, space)
        given = [*map(list, (stride, padding, dilation)), groups]
        if given != [packed.stride(), packed.padding(), packed.dilation(), packed.groups()]:
            raise RuntimeError(f"[quantized::{name}] expected the parameters of the packed weights, got {given}")
        return _convolve(name, space, relu)(x, packed, scale, zero_point)

    return convolve


def _dynamic(name: str, space: int) -> Callable:
    def convolve(x: Tensor, packed: Any, reduce_range: bool) -> Tensor:
        packed = _checked(name, packed, space)
        if x.dtype is not _C.float32:
            raise RuntimeError(f"[quantized::{name}] expected an input of float32, got {x.dtype}")
        quantizer = dynamic_quantizer(x.detach(), quint8, reduce_range)
        sums, scales, bias = _sums(name, wrapped(quantizer.quantize(x.detach()), quantizer), packed)
        numbers = sums.to(_C.float32) if bias is None else sums + bias / scales
        factor = scales / quantizer.scale.to(_C.float32)  # type: ignore[union-attr]
        ints = _C.ops.quantize_affine(numbers, factor, quantizer.zero_point, *quint8.limits, False)
        return quantizer.dequantize(ints)  # as in PyTorch, the result is quantized with the input's parameters

    return convolve


def _adding(name: str, relu: bool) -> Callable:
    def convolve(x: Any, added: Any, packed: Any, scale: float, zero_point: int) -> QuantizedTensor:
        check_quantized(name, x, added)
        sums, scales, bias = _sums(name, x, _checked(name, packed, 2))
        numbers = _C.ops.dequantize_affine(sums, scales, 0)
        numbers = (numbers if bias is None else numbers + bias) + added.dequantize()
        return _channels_last(quantized_numbers(numbers, Quantizer(x.dtype, scale, zero_point), relu), 2)

    return convolve


def _prepack(space: int, transpose: bool) -> Callable:
    def prepack(weight: Any, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], *rest: Any) -> ConvPackedParams:
        output_padding, dilation, groups = rest if transpose else ([0] * space, *rest)
        return ConvPackedParams(space, weight, bias, stride, padding, output_padding, dilation, groups, transpose)

    return prepack


def _unpack(packed: Any) -> tuple[Tensor, Tensor | None]:
    if not isinstance(packed, ConvPackedParams):
        raise RuntimeError(f"[quantized::conv_unpack] expected weights of conv_prepack, got {type(packed).__name__}")
    return packed.unpack()


def _define() -> None:
    for space in (1, 2, 3):
        for name in (f"conv{space}d", f"conv{space}d_relu"):
            relu = name.endswith("_relu")
            kernel(name if space == 1 else f"{name}.new")(_convolve(name, space, relu))
            if space > 1:
                kernel(name)(_with_parameters(name, space, relu))
        for base in (f"conv{space}d", f"conv_transpose{space}d"):
            transpose = "transpose" in base
            kernel(f"{base}_dynamic")(_dynamic(f"{base}_dynamic", space))
            kernel(f"{base}_prepack")(_prepack(space, transpose))
            kernel(f"{base}_unpack")(_unpack)
            if transpose:
                kernel(base)(_convolve(base, space, False))
            if space > 1:
                for method in ("stride", "padding", "output_padding", "dilation", "groups"):
                    kernel(f"{base}_{method}")(lambda packed, method=method: getattr(packed, method)())
                kernel(f"{base}_transpose")(lambda packed: int(packed.transpose()))


_define()
kernel("conv2d_add")(_adding("conv2d_add", False))
kernel("conv2d_add_relu")(_adding("conv2d_add_relu", True))
kernel("conv_prepack")(_prepack(2, False))
kernel("conv_unpack")(_unpack)
