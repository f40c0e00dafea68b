"""torch.onnx: export to ONNX, not implemented yet, and load(), which imports ONNX models (see importer/)."""

from __future__ import annotations

from collections.abc import Callable

import enum

from .._lazy import lazy_attributes
from .._not_implemented import not_implemented
from .errors import OnnxExporterError

__all__ = ["ExportableModule", "InputObserver", "ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]  # noqa: F822


class OperatorExportTypes(enum.Enum):
    """How operators that ONNX lacks would be exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.Enum):
    """The mode in which a module would be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """Returns False: nothing is exported."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Checks its arguments and has no effect: nothing is exported, so the function would never be called.

    Raises:
        ValueError: the name is not of the form "namespace::name".
        TypeError: the function cannot be called, or the version is not an int.
    """
    if "::" not in symbolic_name:
        raise ValueError(
            f"[register_custom_op_symbolic] expected a name such as 'namespace::name', got {symbolic_name!r}"
        )
    if not callable(symbolic_fn) or not isinstance(opset_version, int):
        raise TypeError(
            f"[register_custom_op_symbolic] expected a function and a version, got {symbolic_fn!r}, {opset_version!r}"
        )


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Has no effect, like register_custom_op_symbolic."""
    register_custom_op_symbolic(symbolic_name, len, opset_version)


not_implemented(
    globals(), "modules are not exported to ONNX yet", "export", "ExportableModule InputObserver ONNXProgram"
)
__getattr__, __dir__ = lazy_attributes(
    globals(),
    (
        "backend", "errors", "importer", "operators", "ops", "symbolic_helper", "symbolic_opset9", "symbolic_opset11",
        "symbolic_opset12",
    ),
    {"importer": "load OnnxModel"},
)
