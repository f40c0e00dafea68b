"""torch.ao.nn.sparse.quantized: quantized linear layers whose weights have blocks of zeros."""

from __future__ import annotations

from . import dynamic
from .linear import Linear, LinearPackedParams
from .utils import LinearBlockSparsePattern

__all__ = ["Linear", "LinearBlockSparsePattern", "LinearPackedParams", "dynamic"]
