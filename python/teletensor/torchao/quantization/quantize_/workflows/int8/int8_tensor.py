"""Int8Tensor: weights in int8, multiplied with float activations or with activations that are quantized to int8 first."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...... import _C
from ......_C import Tensor
from ......_functions import finfo
from ......nn import functional as F
from .....utils import TorchAOBaseTensor, bound
from ...._products import int8_dynamic_product, int8_product, int8_rows, int8_weight_product, needs_gradient
from ....granularity import Granularity, PerRow
from ....quant_primitives import MappingType, choose_qparams_affine, dequantize_affine, quantize_affine
from ....utils import get_block_size

__all__ = ["Int8Tensor", "QuantizeTensorToInt8Kwargs"]


@dataclasses.dataclass
class QuantizeTensorToInt8Kwargs:
    """How activations are quantized to int8.

    Args:
        granularity: one scale per row (token) or per tensor.
        mapping_type: whether the zero point is 0.
        reduce_range: uses 7 bits.
    """

    granularity: Granularity
    mapping_type: MappingType = MappingType.SYMMETRIC
    reduce_range: bool = False


class Int8Tensor(TorchAOBaseTensor):
    """A weight in int8.

    Args:
        qdata: (..., out, in), int8; scale: float32, one element per block.
        block_size: the sizes of the blocks that share a scale.
        dtype: of the dequantized values.
        zero_point: int8, one element per block; None: 0.
        act_quant_kwargs: activations are quantized too, with scales of each input, or with act_quant_scale if that is given.
        act_pre_scale: activations are multiplied by it first.
    """

    __module__ = "teletensor.torchao.quantization"  # the name in torchao's files
    tensor_data_names = ["qdata", "scale"]
    optional_tensor_data_names = ["zero_point", "act_quant_scale", "act_quant_zero_point", "act_pre_scale"]
    tensor_attribute_names = ["block_size", "dtype"]
    optional_tensor_attribute_names = ["act_quant_kwargs", "reduce_range"]

    def __init__(
        self, qdata: Tensor, scale: Tensor, block_size: list[int], dtype: Any, zero_point: Tensor | None = None,
        act_quant_scale: Tensor | None = None, act_quant_zero_point: Tensor | None = None, act_pre_scale: Tensor | None = None,
        act_quant_kwargs: QuantizeTensorToInt8Kwargs | None = None, reduce_range: bool = False,
    ):  # fmt: skip
        super().__init__()
        if dtype != self.dtype:
            raise AssertionError(f"expected the dtype {self.dtype}, got {dtype}")
        self.qdata, self.scale, self.zero_point, self.block_size = qdata, scale, zero_point, list(block_size)
        self.act_quant_scale, self.act_quant_zero_point, self.act_pre_scale = act_quant_scale, act_quant_zero_point, act_pre_scale
        self.act_quant_kwargs, self.reduce_range = act_quant_kwargs, reduce_range

    @classmethod
    def _normalize_granularity(cls, granularity: Any) -> tuple[Granularity, Granularity]:
        """The granularities of activations and weights from one, two or none."""
        if granularity is None:
            return PerRow(), PerRow()
        if isinstance(granularity, Granularity):
            return granularity, granularity
        if not isinstance(granularity, (list, tuple)) or len(granularity) != 2:
            raise ValueError(f"Invalid granularity type: {granularity}. Expected None, Granularity, or list of 2 Granularities.")
        return granularity[0], granularity[1]

    @classmethod
    def from_hp(
        cls, hp_tensor: Tensor, granularity: Granularity, mapping_type: MappingType = MappingType.SYMMETRIC, scale: Tensor | None = None,
        zero_point: Tensor | None = None, act_quant_kwargs: QuantizeTensorToInt8Kwargs | None = None, act_quant_scale: Tensor | None = None,
        act_quant_zero_point: Tensor | None = None, act_pre_scale: Tensor | None = None, reduce_range: bool = False,
    ) -> Int8Tensor:  # fmt: skip
        """Quantizes a tensor, with scales of its values or with the given ones."""
        block_size = list(get_block_size(hp_tensor.shape, granularity))
        low, high = (-64, 63) if reduce_range else (-128, 127)
        symmetric = zero_point is None and (scale is not None or mapping_type == MappingType.SYMMETRIC)
        if scale is None:
            scale, zero_point = choose_qparams_affine(
                hp_tensor, mapping_type, block_size, _C.int8, low, high, eps=finfo(_C.float32).eps, scale_dtype=_C.float32,
                zero_point_dtype=_C.int8, keepdim=True,
            )  # fmt: skip
        else:
            counts = [n // b for n, b in zip(hp_tensor.shape, block_size, strict=True)]
            if list(scale.shape) != counts:
                raise AssertionError(f"expected a scale of shape {counts}, got {tuple(scale.shape)}")
            zero_point = _C.torch.zeros_like(scale, dtype=_C.int8) if zero_point is None else zero_point
        qdata = quantize_affine(hp_tensor, block_size, scale, zero_point, _C.int8, low, high)
        made = cls(
            qdata, scale, block_size, hp_tensor.dtype, zero_point=zero_point, act_quant_scale=act_quant_scale,
            act_quant_zero_point=act_quant_zero_point, act_pre_scale=act_pre_scale, act_quant_kwargs=act_quant_kwargs,
            reduce_range=reduce_range,
        )  # fmt: skip
        if symmetric:
            made._symmetric = True
        return made

    def has_zero_points(self) -> bool:
        """Whether zero points are not all 0. Waits for them once, if they were not computed here."""
        if vars(self).get("_symmetric") is None:
            self._symmetric = self.zero_point is None or not bool(self.zero_point.any())
        return not self._symmetric

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        return dequantize_affine(
            self.qdata, self.block_size, self.scale, self.zero_point, _C.int8, output_dtype=output_dtype or self.dtype
        )


def _activation(x: Tensor, weight: Int8Tensor) -> Int8Tensor:
    """The activations in int8, as the weight's configuration says."""
    options = weight.act_quant_kwargs
    scale, point = weight.act_quant_scale, weight.act_quant_zero_point
    if scale is not None and scale.numel() == 1:
        scale, point = scale.reshape((1,) * x.dim()), None if point is None else point.reshape((1,) * x.dim())
    elif scale is not None and scale.dim() != x.dim():  # one scale per tensor, or per row of the last dimension
        shape = (*(1,) * (x.dim() - scale.dim()), *scale.shape)
        scale, point = scale.reshape(shape), None if point is None else point.reshape(shape)
    return Int8Tensor.from_hp(x, options.granularity, options.mapping_type, scale, point, reduce_range=options.reduce_range)


def _product_with_rows(x: Tensor, weight: Int8Tensor, bias: Tensor | None) -> Tensor | None:
    """The layer as one operator of the engine, which quantizes each row of the input with a zero point. None: it has none."""
    options = weight.act_quant_kwargs
    if options is None or weight.has_zero_points() or weight.act_quant_scale is not None or weight.scale.numel() == 1:
        return None
    if not isinstance(options.granularity, PerRow) or options.mapping_type == MappingType.SYMMETRIC:
        return None
    inside = None if needs_gradient(bias) else bias
    x = x.detach() if x.requires_grad else x  # rounding has no gradients
    found = int8_dynamic_product(x, weight.qdata, weight.scale, inside, options.reduce_range)
    return found if found is None or inside is bias else found + bias


@Int8Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    if not isinstance(weight, Int8Tensor):  # an Int8Tensor as activation
        return F.linear(x.dequantize(), weight, bias)
    dtype = x.dtype
    if weight.act_pre_scale is not None:
        x = x * weight.act_pre_scale
    options = weight.act_quant_kwargs
    if (found := _product_with_rows(x, weight, bias)) is not None:
        return found
    rows = x.reshape(-1, x.shape[-1])
    if weight.has_zero_points():
        rows = rows if options is None else _activation(rows.detach(), weight).dequantize(dtype)
        result = F.linear(rows, weight.dequantize(dtype))
    elif options is not None:
        rows = rows.detach()  # rounding has no gradients
        per_row = weight.act_quant_scale is None and isinstance(options.granularity, PerRow)
        symmetric = options.mapping_type == MappingType.SYMMETRIC
        if per_row and symmetric:
            (q, scales), points = int8_rows(rows, options.reduce_range), None
        else:
            quantized = _activation(rows, weight)
            q, scales = quantized.qdata, quantized.scale.reshape(-1, 1)
            points = None if symmetric else quantized.zero_point.reshape(-1, 1)
        result = int8_product(q, weight.qdata, scales, weight.scale.reshape(1, -1), points)
    elif weight.block_size[-1] == weight.shape[-1]:
        result = int8_weight_product(rows, weight.qdata, weight.scale.reshape(-1))
    else:
        result = F.linear(rows, weight.dequantize(dtype))
    result = result.to(dtype).reshape(*x.shape[:-1], weight.shape[0])
    return result if bias is None else (result + bias).to(dtype)
