"""torch.onnx.errors: errors of an export."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of an export."""


class OnnxExporterError(RuntimeError):
    """An error of an export."""


class UnsupportedOperatorError(OnnxExporterError):
    """ONNX has no such operator."""


class SymbolicValueError(OnnxExporterError):
    """A value is not known during the export."""
