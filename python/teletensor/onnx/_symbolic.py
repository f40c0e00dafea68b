"""ONNX's operators as functions of PyTorch's graphs: packages import their names; calling one raises an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def symbolic_functions(module: str) -> Callable[[str], Callable]:
    """Returns __getattr__ of a module whose functions raise NotImplementedError when called."""

    def get(name: str) -> Callable:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")

        def function(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"[onnx.{name}] modules are not exported to ONNX yet")

        function.__name__ = name
        return function

    return get
