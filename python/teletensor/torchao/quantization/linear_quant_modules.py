"""torchao.quantization.linear_quant_modules: linear layers with weights of 4 bits as buffers, which QAT quantizers make."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..._functions import finfo
from ..._quantized import functions as products
from ...nn import Module
from ...nn import functional as F
from .quant_primitives import MappingType, choose_qparams_affine, dequantize_affine, quantize_affine

__all__ = ["Int8DynActInt4WeightLinear", "WeightOnlyInt4Linear"]


def fits_int4(inputs: int, group_size: int = 1, inner_k_tiles: int | None = None) -> bool:
    """Whether rows consist of whole groups, and of whole tiles of kernels for GPUs."""
    return inputs % group_size == 0 and (inner_k_tiles is None or inputs % (inner_k_tiles * 16) == 0)


class WeightOnlyInt4Linear(Module):
    """A layer with packed weights of 4 bits and no bias.

    Args:
        groupsize: the elements of a row that share a scale: 32 to 256.
        precision: the dtype to which inputs are converted.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = False, device: Any = None, dtype: Any = None, groupsize: int = 128,
        inner_k_tiles: int = 8, precision: Any = _C.bfloat16, scales_precision: Any = _C.bfloat16,
    ) -> None:  # fmt: skip
        super().__init__()
        if dtype is not None:
            raise ValueError("Please specify 'precision' instead of 'dtype'")
        if bias or out_features % 8 or not fits_int4(in_features, groupsize, inner_k_tiles):
            raise AssertionError(
                f"require bias=False, out_features % 8 == 0 and in_features that are multiples of {groupsize} and {16 * inner_k_tiles}, "
                f"got {bias}, {out_features} and {in_features}"
            )
        self.in_features, self.out_features, self.groupsize, self.inner_k_tiles = in_features, out_features, groupsize, inner_k_tiles
        self.precision, self.scales_precision = precision, scales_precision
        self.register_buffer("weight", _C.torch.zeros(out_features, in_features // 2, dtype=_C.uint8, device=device))
        shape = (in_features // groupsize, out_features, 2)
        self.register_buffer("scales_and_zeros", _C.torch.zeros(*shape, dtype=scales_precision, device=device))

    def set_weight(self, ints: Tensor, scales: Tensor, zeros: Tensor) -> None:
        """Packs integers from 0 to 15; scales and zeros have the sizes (rows, groups)."""
        self.weight = products._convert_weight_to_int4pack_for_cpu(ints.to(_C.int32), self.inner_k_tiles)
        self.scales_and_zeros = _C.torch.stack([scales.t(), zeros.t()], -1).to(self.scales_precision).contiguous()

    def forward(self, input: Tensor) -> Tensor:
        """The layer's result, of the input's dtype."""
        rows = input.reshape(-1, input.shape[-1]).to(self.precision)
        found = products._weight_int4pack_mm_for_cpu(rows, self.weight, self.groupsize, self.scales_and_zeros)
        return found.reshape(*input.shape[:-1], self.out_features).to(input.dtype)


class Int8DynActInt4WeightLinear(Module):
    """A layer with weights of 4 bits in int8, and inputs that are rounded to int8 per row.

    Args:
        groupsize: the elements of a row of the weight that share a scale.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None, groupsize: int = 256,
        precision: Any = _C.float32, scales_precision: Any = _C.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        if dtype is not None:
            raise ValueError("Please specify 'precision' instead of 'dtype'")
        if in_features % groupsize:
            raise AssertionError(f"require in_features:{in_features} % groupsize:{groupsize} == 0")
        self.in_features, self.out_features, self.groupsize, self.precision = in_features, out_features, groupsize, precision
        zeros, shape = _C.torch.zeros, (out_features, in_features // groupsize)
        self.register_buffer("weight", zeros(out_features, in_features, dtype=_C.int8, device=device))
        self.register_buffer("scales", zeros(*shape, dtype=scales_precision, device=device))
        self.register_buffer("zeros", zeros(*shape, dtype=scales_precision, device=device))
        if bias:
            self.register_buffer("bias", zeros(out_features, dtype=precision, device=device))
        else:
            self.bias = None

    def forward(self, input: Tensor) -> Tensor:
        """The layer's result, of the dtype ``precision``."""
        x = input.to(self.precision)
        tokens = (1,) * (x.dim() - 1) + tuple(x.shape[-1:])
        scale, point = choose_qparams_affine(
            x, MappingType.ASYMMETRIC, tokens, _C.int8, -128, 127, finfo(_C.float32).eps, _C.float32, _C.float32
        )
        ints = quantize_affine(x, tokens, scale, point, _C.int8, -128, 127)
        x = dequantize_affine(ints, tokens, scale, point, _C.int8, -128, 127, output_dtype=x.dtype)
        weight = dequantize_affine(
            self.weight, (1, self.groupsize), self.scales, self.zeros, _C.int8, -8, 7, output_dtype=self.precision
        )
        return F.linear(x, weight, self.bias)
