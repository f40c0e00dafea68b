"""torch.ao.quantization.quant_type: the kinds of quantization."""

from ._types import QuantType

__all__ = ["QuantType"]
