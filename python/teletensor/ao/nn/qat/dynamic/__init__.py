"""torch.ao.nn.qat.dynamic: training for dynamic quantization, whose activations are rounded by their own range."""

from __future__ import annotations

from ....._lazy import lazy_attributes

__all__ = ["Linear", "modules"]

__getattr__, __dir__ = lazy_attributes(globals(), (), {"linear": "Linear"})
