"""torch.ao: quantization."""

from __future__ import annotations

from .._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), ("nn", "quantization"))
