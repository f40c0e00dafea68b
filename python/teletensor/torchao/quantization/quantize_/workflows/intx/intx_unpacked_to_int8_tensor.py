"""IntxUnpackedToInt8Tensor: weights of 1 to 8 bits, stored in int8, with groups along a row."""

from __future__ import annotations

from typing import Any

from ...... import _C, _small_integers
from ......_C import Tensor
from ......nn import functional as F
from .....utils import TorchAOBaseTensor, bound
from ....granularity import PerToken
from ....quant_primitives import MappingType, choose_qparams_affine, dequantize_affine, limits, quantize_affine
from ....utils import get_block_size

__all__ = ["IntxUnpackedToInt8Tensor"]

_FLOATS = (_C.float16, _C.bfloat16, _C.float32)
_PER_TOKEN = "int8_asym_per_token"


class IntxUnpackedToInt8Tensor(TorchAOBaseTensor):
    """A weight of 1 to 8 bits, one value in each byte.

    Args:
        qdata: int8; scale, zero_point: one element per block.
        target_dtype: torch.int1 to torch.int8: the range of the values.
        block_size: the sizes of the blocks that share a scale.
        activation_quantization: "int8_asym_per_token": activations are rounded to int8 per row first; None: not.
    """

    __module__ = "teletensor.torchao.quantization"  # the name in torchao's files
    tensor_data_names = ["qdata", "scale", "zero_point"]
    tensor_attribute_names = ["target_dtype", "block_size", "dtype", "activation_quantization"]

    def __init__(
        self, qdata: Tensor, scale: Tensor, zero_point: Tensor, target_dtype: Any, block_size: Any, dtype: Any, activation_quantization: Any
    ):
        super().__init__()
        small = isinstance(target_dtype, _small_integers.SmallIntegerDType) and target_dtype.is_signed
        if qdata.dtype != _C.int8 or not (small or target_dtype == _C.int8) or dtype not in _FLOATS:
            raise AssertionError(f"expected int8 data of an integer dtype up to int8, got {qdata.dtype} of {target_dtype}")
        counts = tuple(n // b for n, b in zip(qdata.shape, block_size, strict=True))
        if tuple(scale.shape) != counts or tuple(zero_point.shape) != counts:
            found = tuple(scale.shape), tuple(zero_point.shape)
            raise AssertionError(f"expected scales and zero points of shape {counts}, got {found[0]} and {found[1]}")
        if activation_quantization not in (None, _PER_TOKEN):
            raise AssertionError(f"expected activation_quantization {_PER_TOKEN!r} or None, got {activation_quantization!r}")
        self.qdata, self.scale, self.zero_point = qdata, scale, zero_point
        self.target_dtype, self.block_size, self.activation_quantization = target_dtype, tuple(block_size), activation_quantization

    @classmethod
    def from_hp(
        cls, hp_tensor: Tensor, block_size: Any, target_dtype: Any, *, mapping_type: MappingType = MappingType.SYMMETRIC,
        activation_quantization: str | None = None, custom_scale: Tensor | None = None, custom_zero_point: Tensor | None = None,
    ) -> IntxUnpackedToInt8Tensor:  # fmt: skip
        """Quantizes a tensor, with scales of its values or with the given ones."""
        low, high = limits(target_dtype)
        if (custom_scale is None) != (custom_zero_point is None):
            raise AssertionError("expected custom_scale and custom_zero_point together")
        scale, point = custom_scale, custom_zero_point
        if scale is None:
            scale, point = choose_qparams_affine(
                hp_tensor, mapping_type, block_size, _C.int8, low, high, zero_point_dtype=_C.int8, keepdim=True
            )
        qdata = quantize_affine(hp_tensor, block_size, scale, point, _C.int8, low, high)
        return cls(qdata, scale, point, target_dtype, block_size, hp_tensor.dtype, activation_quantization)

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        low, high = limits(self.target_dtype)
        return dequantize_affine(
            self.qdata, self.block_size, self.scale, self.zero_point, _C.int8, low, high, output_dtype=output_dtype or self.dtype
        )


def _rounded_per_token(x: Tensor) -> Tensor:
    """The activations rounded to int8 with one scale and zero point per row."""
    block_size = get_block_size(x.shape, PerToken())
    scale, point = choose_qparams_affine(x, MappingType.ASYMMETRIC, block_size, _C.int8, -128, 127, zero_point_dtype=_C.int8)
    q = quantize_affine(x, block_size, scale, point, _C.int8, -128, 127)
    return dequantize_affine(q, block_size, scale, point, _C.int8, -128, 127, output_dtype=x.dtype)


@IntxUnpackedToInt8Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    if weight.activation_quantization is not None:
        x = _rounded_per_token(x)
    return F.linear(x, weight.dequantize(), bias)


@IntxUnpackedToInt8Tensor.implements_torch_function(F.embedding)
def _embedding(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    given = bound("input weight padding_idx max_norm", args, kwargs)  # the others concern gradients of the weight
    indices, weight, block_size = given["input"], given["weight"], given["weight"].block_size
    if given["max_norm"] is not None:
        raise NotImplementedError("[embedding] max_norm changes the weight, which is quantized")
    if block_size[0] != 1 or weight.activation_quantization is not None:
        return F.embedding(indices, weight.dequantize())
    rows = indices.reshape(-1)
    chosen = [t.index_select(0, rows) for t in (weight.qdata, weight.scale, weight.zero_point)]
    part = IntxUnpackedToInt8Tensor(*chosen, weight.target_dtype, block_size, weight.dtype, None)
    return part.dequantize().reshape(*indices.shape, weight.shape[1])
