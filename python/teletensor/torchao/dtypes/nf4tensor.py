"""torchao.dtypes.nf4tensor: the older path of NF4Tensor."""

from __future__ import annotations

from ..quantization.quantize_.workflows.nf4.nf4_tensor import NF4Tensor, linear_nf4, to_nf4

__all__ = ["NF4Tensor", "linear_nf4", "to_nf4"]
