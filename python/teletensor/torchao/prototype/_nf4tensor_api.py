"""torchao.prototype._nf4tensor_api: weights in NF4."""

from __future__ import annotations

from ..quantization.quantize_.workflows.nf4.nf4_tensor import NF4Tensor, NF4WeightOnlyConfig, nf4_weight_only

__all__ = ["NF4Tensor", "NF4WeightOnlyConfig", "nf4_weight_only"]
