"""torchao.prototype.quantization.quant_api: float8 activations with fixed scales."""

from __future__ import annotations

from ...quantization.quantize_.workflows.float8.float8_static import (
    Float8ObservedLinear,
    Float8StaticActivationFloat8WeightConfig,
)

__all__ = ["Float8ObservedLinear", "Float8StaticActivationFloat8WeightConfig"]
