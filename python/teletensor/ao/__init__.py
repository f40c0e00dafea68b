"""torch.ao: quantization, and weights in the formats of other programs."""

from __future__ import annotations

from .._lazy import lazy_attributes

__all__ = ["nn", "ns", "pruning", "quantization"]

__getattr__, __dir__ = lazy_attributes(globals(), ("gguf", "nn", "ns", "packed_weights", "pruning", "quantization"))
