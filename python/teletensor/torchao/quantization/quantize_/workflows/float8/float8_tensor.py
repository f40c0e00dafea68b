"""Float8Tensor: weights in float8, with ordinary or with float8 activations."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...... import _C
from ......_C import Tensor
from ......nn import functional as F
from .....utils import TorchAOBaseTensor, bound
from ....granularity import Granularity, PerRow
from ....quant_primitives import dequantize_float8, float8_scale, quantize_float8
from ....utils import get_block_size

__all__ = ["Float8MMConfig", "Float8Tensor", "QuantizeTensorToFloat8Kwargs"]


@dataclasses.dataclass
class Float8MMConfig:
    """Settings of products in float8. Sums are float32 on every device, so ``use_fast_accum`` changes nothing."""

    emulate: bool = False
    use_fast_accum: bool = False
    pad_inner_dim: bool = False


@dataclasses.dataclass
class QuantizeTensorToFloat8Kwargs:
    """How activations are rounded to float8: the dtype, the granularity, and limits of the largest value."""

    float8_dtype: Any = _C.float8_e4m3fn
    granularity: Granularity = dataclasses.field(default_factory=PerRow)
    mm_config: Float8MMConfig | None = None
    hp_value_lb: float | None = None
    hp_value_ub: float | None = None


class Float8Tensor(TorchAOBaseTensor):
    """A weight in float8: ``qdata * scale``.

    Args:
        qdata: float8; scale: float32, one element per block of block_size elements.
        act_quant_kwargs: activations are rounded to float8 too.
        dtype: of the dequantized values.
    """

    __module__ = "teletensor.torchao.quantization"  # the name in torchao's files
    tensor_data_names = ["qdata", "scale"]
    optional_tensor_attribute_names = ["block_size", "mm_config", "act_quant_kwargs", "dtype"]

    @classmethod
    def _outer(cls, given: dict[str, Any]) -> tuple[Any, Any]:
        return given["qdata"].shape, given.get("dtype") or _C.bfloat16

    def __init__(
        self, qdata: Tensor, scale: Tensor, block_size: list[int] | None = None, mm_config: Float8MMConfig | None = None,
        act_quant_kwargs: QuantizeTensorToFloat8Kwargs | None = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        if dtype is not None and dtype != self.dtype:
            raise AssertionError(f"expected the dtype {self.dtype}, got {dtype}")
        self.qdata, self.scale, self.block_size = qdata, scale, list(block_size or qdata.shape)
        self.mm_config, self.act_quant_kwargs = mm_config, act_quant_kwargs

    @classmethod
    def from_hp(
        cls, hp_tensor: Tensor, float8_dtype: Any = _C.float8_e4m3fn, granularity: Granularity | None = None,
        mm_config: Float8MMConfig | None = None, hp_value_lb: float | None = None, hp_value_ub: float | None = None,
        act_quant_kwargs: QuantizeTensorToFloat8Kwargs | None = None,
    ) -> Float8Tensor:  # fmt: skip
        """Rounds a tensor to float8; each block's largest value becomes the largest value of the dtype."""
        block_size = list(get_block_size(hp_tensor.shape, granularity or PerRow()))
        scale = float8_scale(hp_tensor, block_size, float8_dtype, hp_value_lb, hp_value_ub)
        qdata = quantize_float8(hp_tensor, scale, block_size, float8_dtype)
        return cls(qdata, scale, block_size, mm_config, act_quant_kwargs, dtype=hp_tensor.dtype)

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        return dequantize_float8(self.qdata, self.scale, self.block_size, output_dtype or self.dtype)


@Float8Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    if (options := weight.act_quant_kwargs) is None:
        return F.linear(x, weight.dequantize(x.dtype), bias)
    rows = x.detach().reshape(-1, x.shape[-1])  # rounding has no gradients
    rounded = Float8Tensor.from_hp(
        rows, options.float8_dtype, options.granularity, hp_value_lb=options.hp_value_lb, hp_value_ub=options.hp_value_ub
    )
    if tuple(weight.block_size) == (128, 128) != tuple(weight.shape) and tuple(rounded.block_size) == (1, 128):
        lines, tiles = F.ScalingType.BlockWise1x128, F.ScalingType.BlockWise128x128
        found = F.scaled_mm(
            rounded.qdata, weight.qdata.t(), rounded.scale, lines, weight.scale.t(), tiles, output_dtype=_C.float32
        ).to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])  # fmt: skip
        return found if bias is None else found + bias
    # The scales multiply the sums of products, which are float32.
    sums = F.linear(rounded.qdata.to(_C.float32), weight.qdata.to(_C.float32))
    result = (sums * rounded.scale.reshape(-1, 1) * weight.scale.reshape(1, -1)).to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias
