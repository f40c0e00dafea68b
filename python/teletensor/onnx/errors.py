"""torch.onnx.errors: errors of an export."""

from __future__ import annotations

from typing import Any

from .._lazy import set_module

__all__ = ["OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of an export."""


class OnnxExporterError(RuntimeError):
    """An error of an export."""


class TorchExportError(OnnxExporterError):
    """torch.export.export could not record the module."""


class ConversionError(OnnxExporterError):
    """The program could not be written as an ONNX graph."""


class DispatchError(ConversionError):
    """Operators without a translation."""


class GraphConstructionError(ConversionError):
    """The ONNX graph is invalid."""


class UnsupportedOperatorError(OnnxExporterError):
    """ONNX has no such operator, in the requested version of its operators."""

    def __init__(self, name: str, version: int, supported_version: int | None = None) -> None:
        if supported_version is not None:
            super().__init__(
                f"Exporting the operator '{name}' to ONNX opset version {version} is not supported. Support for this operator was added "
                f"in version {supported_version}, try exporting with this version"
            )
        else:
            super().__init__(f"Exporting the operator '{name}' to ONNX opset version {version} is not supported")


class SymbolicValueError(OnnxExporterError):
    """A value is not known during the export."""

    def __init__(self, msg: str, value: Any = None) -> None:
        super().__init__(msg if value is None else f"{msg}  [Caused by the value '{value}'.]")


set_module("teletensor.onnx", OnnxExporterError)
