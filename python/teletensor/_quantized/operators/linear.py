"""Linear layers of torch.ops.quantized: products of 8-bit integers in the engine."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..._quantized_names import quint8
from ..define import kernel
from ..packed import HalfLinearPackedParams, LinearPackedParams
from ..quantizer import Quantizer, single
from ..tensor import QuantizedTensor, wrapped
from .arithmetic import check_quantized, limited


def factors(quantizer: Quantizer, scales: Tensor) -> Tensor:
    """The products of the input's and the weight's scales, float32."""
    scale = quantizer.scale
    return scales * (scale.to(_C.float32) if isinstance(scale, Tensor) else single(scale))


def output_arguments(quantizer: Quantizer, relu: bool) -> tuple[float, int, int, int, bool]:
    """The last arguments of operators that requantize: the result's scale, zero point, limits and whether it is signed."""
    low, high = limited(quantizer, relu)
    scale, zero_point = quantizer.numbers()
    return scale, zero_point, low, high, quantizer.dtype.limits[0] < 0


def _checked(name: str, packed: Any) -> LinearPackedParams:
    if not isinstance(packed, LinearPackedParams) or isinstance(packed, HalfLinearPackedParams):
        raise RuntimeError(f"[quantized::{name}] expected weights of linear_prepack, got {type(packed).__name__}")
    return packed


def _operands(name: str, x: Any, packed: Any) -> tuple[tuple, Tensor, Tensor | None]:
    """The operands of an integer product, the scales of its sums and the bias."""
    check_quantized(name, x)
    packed = _checked(name, packed)
    weight = packed._weight
    operands = (x._ints, weight.ints, x._quantizer.zero_point, weight.zero_points)
    return operands, factors(x._quantizer, weight.scales), packed._bias


def _numbers(name: str, x: Any, packed: Any) -> Tensor:
    """The results as numbers of float32."""
    operands, scales, bias = _operands(name, x, packed)
    numbers = _C.ops.dequantize_affine(_C.ops.int8_linear(*operands), scales, 0)
    return numbers if bias is None else numbers + bias


def _linear(name: str, relu: bool) -> None:
    @kernel(name)
    def linear(x: Any, packed: Any, scale: float, zero_point: int) -> QuantizedTensor:
        operands, scales, bias = _operands(name, x, packed)
        quantizer = Quantizer(x.dtype, scale, zero_point)
        return wrapped(_C.ops.int8_linear_quantized(*operands, scales, bias, *output_arguments(quantizer, relu)), quantizer)


_linear("linear", relu=False)
_linear("linear_relu", relu=True)


@kernel("linear_leaky_relu")
def linear_leaky_relu(x: Any, packed: Any, scale: float, zero_point: int, negative_slope: float) -> QuantizedTensor:
    """leaky_relu of a linear layer, quantized."""
    numbers = _C.ops.leaky_relu(_numbers("linear_leaky_relu", x, packed), negative_slope)
    quantizer = Quantizer(x.dtype, scale, zero_point)
    return wrapped(quantizer.quantize(numbers), quantizer)


@kernel("linear_tanh")
def linear_tanh(x: Any, packed: Any, scale: float, zero_point: int) -> QuantizedTensor:
    """tanh of a linear layer, quantized."""
    quantizer = Quantizer(x.dtype, scale, zero_point)
    return wrapped(quantizer.quantize(_C.torch.tanh(_numbers("linear_tanh", x, packed))), quantizer)


def dynamic(name: str, x: Tensor, packed: Any, reduce_range: bool, relu: bool = False) -> Tensor:
    """A linear layer whose input the engine quantizes with parameters for its range; the result is float32."""
    packed = _checked(name, packed)
    if x.dtype is not _C.float32:
        raise RuntimeError(f"[quantized::{name}] expected an input of float32, got {x.dtype}")
    weight = packed._weight
    return _C.ops.int8_linear_dynamic(
        x.detach(), weight.ints, weight.scales, weight.zero_points, packed._bias, reduce_range, False, relu
    )


@kernel("linear_dynamic")
def linear_dynamic(x: Tensor, packed: Any, reduce_range: bool) -> Tensor:
    """A linear layer with a float32 input, which the engine quantizes to quint8, and a float32 result."""
    return dynamic("linear_dynamic", x, packed, reduce_range)


@kernel("linear_relu_dynamic")
def linear_relu_dynamic(x: Tensor, packed: Any, reduce_range: bool) -> Tensor:
    """relu() of linear_dynamic()."""
    return dynamic("linear_relu_dynamic", x, packed, reduce_range, relu=True)


def _from_floats(name: str, x: Tensor, scale: float, zero_point: int, packed: Any) -> Tensor:
    quantizer = Quantizer(quint8, scale, zero_point)
    return _numbers(name, wrapped(quantizer.quantize(x.detach()), quantizer), packed)


@kernel("linear_with_input_q_dq_qweight_dq_output_fp32")
def linear_of_floats(x: Tensor, scale: float, zero_point: int, packed: Any) -> Tensor:
    """A linear layer with a float32 input, quantized with the given parameters, and a float32 result."""
    return _from_floats("linear_with_input_q_dq_qweight_dq_output_fp32", x, scale, zero_point, packed)


@kernel("linear_with_input_q_dq_qweight_dq_relu_output_fp32")
def linear_relu_of_floats(x: Tensor, scale: float, zero_point: int, packed: Any) -> Tensor:
    """relu() of the same."""
    name = "linear_with_input_q_dq_qweight_dq_relu_output_fp32"
    return _C.torch.relu(_from_floats(name, x, scale, zero_point, packed))


@kernel("linear_prepack")
def linear_prepack(weight: Any, bias: Tensor | None) -> LinearPackedParams:
    """Packs a weight of qint8."""
    return LinearPackedParams(weight, bias)


@kernel("linear_prepack_fp16")
def linear_prepack_fp16(weight: Tensor, bias: Tensor | None) -> HalfLinearPackedParams:
    """Packs a weight of float32 as float16."""
    return HalfLinearPackedParams(weight, bias)


@kernel("linear_unpack", "linear_unpack_fp16")
def linear_unpack(packed: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and bias of packed parameters."""
    if not isinstance(packed, LinearPackedParams):
        raise RuntimeError(f"[quantized::linear_unpack] expected weights of linear_prepack, got {type(packed).__name__}")
    return packed.unpack()


def _half(x: Tensor, packed: Any) -> Tensor:
    if not isinstance(packed, HalfLinearPackedParams):
        raise RuntimeError(
            f"[quantized::linear_dynamic_fp16] expected weights of linear_prepack_fp16, got {type(packed).__name__}"
        )
    return _C.ops.linear(x.detach(), *packed.unpack())


@kernel("linear_dynamic_fp16")
def linear_dynamic_fp16(x: Tensor, packed: Any) -> Tensor:
    """A linear layer with a weight that was rounded to float16, computed in float32."""
    return _half(x, packed)


@kernel("linear_relu_dynamic_fp16")
def linear_relu_dynamic_fp16(x: Tensor, packed: Any) -> Tensor:
    """relu() of linear_dynamic_fp16()."""
    return _C.torch.relu(_half(x, packed))


@kernel("linear_dynamic_fp16_unpacked_weight")
def linear_dynamic_fp16_unpacked_weight(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """linear_dynamic_fp16() with a weight that is not packed."""
    return _C.ops.linear(x.detach(), weight.to(_C.float16).to(_C.float32), bias)


@kernel("int4mm_packed_weight_cpu")
def int4mm_packed_weight_cpu(x: Tensor, weight: Tensor, group_size: Tensor, scales_and_zeros: Tensor) -> Tensor:
    """torch._weight_int4pack_mm_for_cpu() with a tensor as group size, which is read."""
    return _C.ops.int4_weight_mm(x, weight, int(group_size.item()), scales_and_zeros)
