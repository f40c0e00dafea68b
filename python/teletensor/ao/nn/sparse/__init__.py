"""torch.ao.nn.sparse: quantized layers whose weights have blocks of zeros, see torch.ao.nn.sparse.quantized."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__all__ = ["quantized"]

__getattr__, __dir__ = lazy_attributes(globals(), ("quantized",))
