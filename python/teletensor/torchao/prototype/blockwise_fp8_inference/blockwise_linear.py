"""torchao.prototype.blockwise_fp8_inference.blockwise_linear."""

from __future__ import annotations

from typing import Any

from .... import _C
from ...._C import Tensor
from ....nn import Module, Parameter
from ...kernel.blockwise_quantization import blockwise_fp8_gemm, fp8_blockwise_act_quant

__all__ = ["BlockwiseQuantLinear"]


class BlockwiseQuantLinear(Module):
    """A linear layer with a float8 weight and inputs that are rounded to float8. The result is bfloat16.

    Args:
        dtype: of the weight and of rounded inputs.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = False, block_size: int = 128, dtype: Any = _C.float8_e4m3fn
    ) -> None:
        super().__init__()
        if dtype not in (_C.float8_e4m3fn, _C.float8_e5m2):
            raise AssertionError(f"Unsupported dtype: {dtype}. Supported dtypes: float8_e4m3fn, float8_e5m2")
        self.weight = Parameter(_C.torch.empty(out_features, in_features, dtype=dtype), requires_grad=False)
        scales = _C.torch.empty(-(-out_features // block_size), -(-in_features // block_size))
        self.scale = Parameter(scales, requires_grad=False)
        self.block_size = block_size
        self.register_parameter("bias", Parameter(_C.torch.empty(out_features)) if bias else None)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's result."""
        rounded, scale = fp8_blockwise_act_quant(x, self.block_size, self.weight.dtype)
        found = blockwise_fp8_gemm(rounded, scale, self.weight, self.scale, self.block_size)
        return found if self.bias is None else found + self.bias
