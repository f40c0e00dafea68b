"""torch.ops: namespaces of operators. Custom operators are found by namespace and name: ``ops.mylib.scale(x)``."""

from __future__ import annotations

from typing import Any

from ._library import aten as _aten
from ._library import registry
from ._library.operators import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "load_library", "loaded_libraries"]

loaded_libraries: set[str] = set()


def _enter_range(name: str, args: str | None = None) -> Any:
    """Starts a range of a profile; returns what ends it."""
    from .profiler import record_function

    return record_function(name, args).__enter__()


_PROFILER = {
    "_record_function_enter": _enter_range,
    "_record_function_enter_new": _enter_range,
    "_record_function_exit": lambda handle: handle.__exit__(),
}


class _Namespace:
    """The operators of a namespace as attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = registry.packet(self.name, name)
        if found is None and self.name == "aten":
            found = _aten.packet(name)
        if found is None and self.name == "profiler":
            found = _PROFILER.get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return registry.names(self.name) + (_aten.names() if self.name == "aten" else [])

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}'>"


_namespaces: dict[str, _Namespace] = {}


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.ops' has no attribute {name!r}")
    return _namespaces.setdefault(name, _Namespace(name))


def load_library(path: Any) -> None:
    """Raises OSError: libraries of compiled PyTorch operators need PyTorch's own library."""
    raise OSError(f"Could not load this library: {path}: teletensor runs no operators compiled for PyTorch")
