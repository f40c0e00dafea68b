"""torch.ao.quantization.fx: the quantization of graphs of torch.fx, which quantize_fx offers."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), ("custom_config", "tracer"))
