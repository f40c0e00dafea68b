"""torchao.prototype.blockwise_fp8_inference: linear layers with float8 weights that have a scale per square block."""

from __future__ import annotations

from ...kernel.blockwise_quantization import (
    blockwise_fp8_gemm,
    fp8_blockwise_act_quant,
    fp8_blockwise_weight_dequant,
    fp8_blockwise_weight_quant,
)
from .blockwise_linear import BlockwiseQuantLinear

__all__ = [
    "BlockwiseQuantLinear", "blockwise_fp8_gemm", "fp8_blockwise_act_quant", "fp8_blockwise_weight_dequant",
    "fp8_blockwise_weight_quant",
]  # fmt: skip
