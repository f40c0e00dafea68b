"""torch.onnx: export to ONNX. Importable; not implemented yet."""

from __future__ import annotations

from .._lazy import lazy_attributes
from .._planned import not_implemented
from .errors import OnnxExporterError

__all__ = ["ExportableModule", "InputObserver", "ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]  # noqa: F822


def is_in_onnx_export() -> bool:
    """Returns False: nothing is exported."""
    return False


not_implemented(
    globals(), "modules are not exported to ONNX yet", "export", "ExportableModule InputObserver ONNXProgram"
)
__getattr__, __dir__ = lazy_attributes(globals(), ("errors", "ops"))
