"""Int4Tensor: weights in 4 bits, one scale and zero point per group of a row."""

from __future__ import annotations

from typing import Any

from ...... import _C
from ......_C import Tensor
from ......_grad_mode import no_grad
from ......nn import functional as F
from .....utils import TorchAOBaseTensor
from ...._products import int4_weight, int4_weight_product, pack_int4
from ....quant_primitives import quantize_affine_tinygemm

__all__ = ["Int4Tensor"]


class Int4Tensor(TorchAOBaseTensor):
    """A weight (out, in) in 4 bits: ``(q - 8) * scale + zero_point``, where the zero point is a float.

    Args:
        qdata: (out, in / 2), int8: two values in each byte, the even column in the low 4 bits, as signed numbers q - 8.
        scale, zero_point: (in / group size, out), in the weight's dtype.
        block_size: (1, group size).
        shape: of the weight.
        act_pre_scale: activations are multiplied by it first.
    """

    tensor_data_names = ["qdata", "scale", "zero_point"]
    tensor_attribute_names = ["block_size", "shape"]
    optional_tensor_data_names = ["act_pre_scale"]
    optional_tensor_attribute_names = ["activation_dtype"]

    @classmethod
    def _outer(cls, given: dict[str, Any]) -> tuple[Any, Any]:
        qdata, scale, point, shape = (given[n] for n in ("qdata", "scale", "zero_point", "shape"))
        groups = (shape[1] // given["block_size"][1], qdata.shape[0]) if qdata.dim() == len(shape) == 2 else None
        if tuple(scale.shape) != groups or tuple(point.shape) != groups:
            raise ValueError(f"expected scales and zero points of shape {groups}, got {tuple(scale.shape)} and {tuple(point.shape)}")
        return shape, scale.dtype

    def __init__(
        self, qdata: Tensor, scale: Tensor, zero_point: Tensor, block_size: list[int], shape: Any, act_pre_scale: Tensor | None = None,
        activation_dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        if tuple(shape) != (qdata.shape[0], qdata.shape[1] * 2):
            raise ValueError(f"expected qdata of shape {(shape[0], shape[1] // 2)}, got {tuple(qdata.shape)}")
        self.qdata, self.scale, self.zero_point, self.block_size = qdata, scale, zero_point, list(block_size)
        self.act_pre_scale, self.activation_dtype = act_pre_scale, activation_dtype

    @classmethod
    @no_grad()
    def from_hp(cls, w: Tensor, block_size: list[int], activation_dtype: Any = None) -> Int4Tensor:
        """Quantizes a weight (out, in).

        Raises:
            AssertionError: the blocks are not groups of a row.
        """
        if w.dim() != 2 or len(block_size) != 2 or block_size[0] != 1 or block_size[1] < 2 or w.shape[1] % 2:
            raise AssertionError(f"Only groupwise quant of matrices is supported, got shape {tuple(w.shape)} and {block_size=}")
        values = w.to(_C.float32)
        rows = values.reshape(w.shape[0], -1, block_size[1])
        lowest, highest = rows.aminmax(dim=-1)
        scale = (highest - lowest).clamp(min=1e-6) / 15
        zero_point = lowest + scale * 8
        q = quantize_affine_tinygemm(values, block_size, scale, zero_point)
        grid = [t.reshape(w.shape[0], -1).t().contiguous().to(w.dtype) for t in (scale, zero_point)]
        return cls(_signed(pack_int4(q)), *grid, list(block_size), tuple(w.shape), activation_dtype=activation_dtype)

    @classmethod
    def from_values(cls, values: Tensor, scale: Tensor, zero_point: Tensor, group_size: int) -> Int4Tensor:
        """A weight of values 0 to 15 (out, in), and scales and zero points (in / group size, out)."""
        return cls(_signed(pack_int4(values)), scale, zero_point, [1, group_size], tuple(values.shape))

    def packed(self) -> Tensor:
        """The values 0 to 15, two in each byte (uint8)."""
        return _unsigned(self.qdata)

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        return int4_weight(self.packed(), self.scale, self.zero_point, self.block_size[1], output_dtype or self.dtype)


def _signed(packed: Tensor) -> Tensor:
    """The bytes of values 0 to 15 as those of signed 4-bit numbers 8 less: both high bits are inverted."""
    return (packed ^ 0x88).view(_C.int8)


def _unsigned(qdata: Tensor) -> Tensor:
    return qdata.view(_C.uint8) ^ 0x88


@Int4Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight = args[0], args[1]
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    if weight.act_pre_scale is not None:
        x = x * weight.act_pre_scale
    rows = x.reshape(-1, x.shape[-1])
    result = int4_weight_product(rows, weight.packed(), weight.scale, weight.zero_point, weight.block_size[1])
    result = result.to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias
