"""torchao.prototype.blockwise_fp8_inference: linear layers with float8 weights that have a scale per square block."""

from __future__ import annotations

from ...kernel.blockwise_quantization import (
    blockwise_fp8_gemm,
    fp8_blockwise_act_quant,
    fp8_blockwise_weight_dequant,
    fp8_blockwise_weight_quant,
)
from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "blockwise_linear": "BlockwiseQuantLinear",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("blockwise_linear",), _NAMES)

__all__ = [
    "BlockwiseQuantLinear", "blockwise_fp8_gemm", "fp8_blockwise_act_quant", "fp8_blockwise_weight_dequant",
    "fp8_blockwise_weight_quant",
]  # fmt: skip
