"""Int4Tensor: weights in 4 bits, one scale and zero point per group of a row."""

from __future__ import annotations

from typing import Any

from ...... import _C
from ......_C import Tensor
from ......_grad_mode import no_grad
from ......nn import functional as F
from .....utils import TorchAOBaseTensor, bound
from ...._products import (
    has_int4_kernel,
    int4_weight,
    int4_weight_product,
    kernel_int4,
    pack_int4,
    unpack_int4,
    values_of_kernel_int4,
)
from ....quant_primitives import quantize_affine_tinygemm

__all__ = ["Int4Tensor"]


class Int4Tensor(TorchAOBaseTensor):
    """A weight (out, in) in 4 bits: ``(q - 8) * scale + zero_point``, where the zero point is a float.

    The constructor and files have torchao's layout; the values are stored as the engine's kernel reads them.

    Args:
        qdata: (out, in / 2), int8: two values in each byte, the even column in the low 4 bits, as signed numbers q - 8.
        scale, zero_point: (in / group size, out), in the weight's dtype.
        block_size: (1, group size).
        shape: of the weight.
        act_pre_scale: activations are multiplied by it first.
    """

    __module__ = "teletensor.torchao.quantization"  # the name in torchao's files
    tensor_data_names = ["qdata", "scale", "zero_point"]
    tensor_attribute_names = ["block_size", "shape"]
    optional_tensor_data_names = ["act_pre_scale"]
    optional_tensor_attribute_names = ["activation_dtype"]

    @classmethod
    def _outer(cls, given: dict[str, Any]) -> tuple[Any, Any]:
        qdata, scale, point, shape = (given[n] for n in ("qdata", "scale", "zero_point", "shape"))
        size = given["block_size"][1]
        if qdata.dim() != 2 or len(shape) != 2 or type(size) is not int or size < 1 or shape[1] % size:
            raise ValueError(f"expected a matrix in groups that divide its width, got {tuple(shape)} and block_size {given['block_size']}")
        groups = (shape[1] // size, qdata.shape[0])
        if tuple(scale.shape) != groups or tuple(point.shape) != groups:
            raise ValueError(f"expected scales and zero points of shape {groups}, got {tuple(scale.shape)} and {tuple(point.shape)}")
        return shape, scale.dtype

    def __init__(
        self, qdata: Tensor, scale: Tensor, zero_point: Tensor, block_size: list[int], shape: Any, act_pre_scale: Tensor | None = None,
        activation_dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        if tuple(shape) != (qdata.shape[0], qdata.shape[1] * 2) or qdata.dtype not in (_C.int8, _C.uint8):
            raise ValueError(f"expected int8 of shape {(shape[0], shape[1] // 2)}, got {qdata.dtype} of shape {tuple(qdata.shape)}")
        self.block_size, self.act_pre_scale, self.activation_dtype = list(block_size), act_pre_scale, activation_dtype
        self._packed = self._as_stored(unpack_int4(qdata.view(_C.uint8) ^ 0x88))
        self._grid = _C.torch.stack((scale, zero_point), -1)

    def _has_kernel(self) -> bool:
        return has_int4_kernel(tuple(self.shape), self.block_size[1])

    def _as_stored(self, values: Tensor) -> Tensor:
        return kernel_int4(values) if self._has_kernel() else pack_int4(values)

    def values(self) -> Tensor:
        """The values 0 to 15, (out, in), uint8."""
        return values_of_kernel_int4(self._packed) if self._has_kernel() else unpack_int4(self._packed)

    @property
    def qdata(self) -> Tensor:
        """The values in torchao's layout."""
        return (pack_int4(self.values()) ^ 0x88).view(_C.int8)

    @property
    def scale(self) -> Tensor:
        """(in / group size, out)."""
        return self._grid[..., 0].contiguous()

    @property
    def zero_point(self) -> Tensor:
        """(in / group size, out)."""
        return self._grid[..., 1].contiguous()

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
        lowest, highest = values.reshape(w.shape[0], -1, block_size[1]).aminmax(dim=-1)
        scale = (highest - lowest).clamp(min=1e-6) / 15
        zero_point = lowest + scale * 8
        q = quantize_affine_tinygemm(values, block_size, scale, zero_point)
        grid = [t.t().to(w.dtype) for t in (scale, zero_point)]
        made = cls.from_values(q, *grid, block_size[1])
        made.activation_dtype = activation_dtype
        return made

    @classmethod
    def from_values(cls, values: Tensor, scale: Tensor, zero_point: Tensor, group_size: int) -> Int4Tensor:
        """A weight of values 0 to 15 (out, in), and scales and zero points (in / group size, out)."""
        return cls((pack_int4(values) ^ 0x88).view(_C.int8), scale, zero_point, [1, group_size], tuple(values.shape))

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        return int4_weight(self.values(), self._grid, self.block_size[1], output_dtype or self.dtype)


@Int4Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    if weight.act_pre_scale is not None:
        x = x * weight.act_pre_scale
    result = int4_weight_product(x.reshape(-1, x.shape[-1]), weight._packed, weight._grid, weight.block_size[1])
    result = result.to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias
