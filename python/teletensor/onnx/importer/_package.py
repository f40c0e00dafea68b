"""The packages that hold ONNX's schema: imported when a model is loaded, because they take 0.2 s and are optional."""

from __future__ import annotations

from types import ModuleType


def onnx() -> ModuleType:
    """PyPI's package `onnx`, which has the protobuf messages and the operators' schemas.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx as package
    except ImportError as error:
        raise ImportError(
            "[onnx.load] the package that defines the ONNX format is missing; install it with: pip install onnx"
        ) from error
    return package
