"""torch.ao.nn.intrinsic.quantized.dynamic: fused modules whose activations are quantized with the range of each tensor."""

from __future__ import annotations

from ......_lazy import lazy_attributes

__all__ = ["LinearReLU", "modules"]

__getattr__, __dir__ = lazy_attributes(globals(), (), {"linear": "LinearReLU"})
