"""torchao.float8: settings of products in float8."""

from __future__ import annotations

from ..quantization.quantize_.workflows.float8.float8_tensor import Float8MMConfig

__all__ = ["Float8MMConfig"]
