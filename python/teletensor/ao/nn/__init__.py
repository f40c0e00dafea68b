"""torch.ao.nn: fused modules, modules for quantization-aware training, and modules with quantized weights."""

from __future__ import annotations

from ..._lazy import lazy_attributes

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]

__getattr__, __dir__ = lazy_attributes(globals(), ("intrinsic", "qat", "quantizable", "quantized", "sparse"))
