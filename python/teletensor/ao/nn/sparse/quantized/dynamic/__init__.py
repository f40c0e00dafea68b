"""torch.ao.nn.sparse.quantized.dynamic: layers that quantize their input themselves."""

from __future__ import annotations

from .linear import Linear

__all__ = ["Linear"]
