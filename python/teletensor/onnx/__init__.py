"""torch.onnx: export of modules to ONNX, and load(), which imports ONNX models (see importer/)."""

from __future__ import annotations

import enum
from collections.abc import Callable

from .._lazy import lazy_attributes
from . import _state
from .errors import OnnxExporterError

__all__ = [  # noqa: F822
    "ExportableModule", "InputObserver", "ONNXProgram", "OnnxExporterError", "errors", "export", "is_in_onnx_export",
    "ops",
]  # fmt: skip

producer_name = "teletensor"


class OperatorExportTypes(enum.Enum):
    """How operators that ONNX lacks would be exported by the TorchScript exporter."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.Enum):
    """The mode in which the TorchScript exporter would export a module."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """Whether export() is running."""
    return _state.exporting > 0


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Registers a function of the TorchScript exporter, which does not exist here: export() raises as long as one is registered.

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
    _state.symbolics[symbolic_name] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Removes a function that register_custom_op_symbolic() has registered."""
    if not isinstance(opset_version, int):
        raise TypeError(f"[unregister_custom_op_symbolic] expected a version, got {opset_version!r}")
    _state.symbolics.pop(symbolic_name, None)

__getattr__, __dir__ = lazy_attributes(
    globals(),
    (
        "backend", "errors", "importer", "operators", "ops", "symbolic_helper", "symbolic_opset9", "symbolic_opset11",
        "symbolic_opset12", "verification",
    ),
    {
        "_export": "export ExportableModule", "_program": "ONNXProgram", "_observer": "InputObserver",
        "importer": "load OnnxModel",
    },
)
