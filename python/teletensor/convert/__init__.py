"""Conversion of models between files: ONNX, torch.export's .pt2, native model folders and .safetensors (docs/convert.md).

convert() reads a model, writes it in another format, runs both for example inputs and reports what could not be kept.
"""

from __future__ import annotations

from .._lazy import lazy_attributes

__all__ = ["ConversionFailed", "Report", "convert"]  # noqa: F822

__getattr__, __dir__ = lazy_attributes(globals(), (), {"_convert": "ConversionFailed convert", "_report": "Report"})
