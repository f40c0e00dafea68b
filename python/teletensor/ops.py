"""torch.ops: namespaces of operators. Custom operators are found by namespace and name: ``ops.mylib.scale(x)``."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

from ._active_profile import record_function
from ._higher_order_ops import _operator
from ._library import aten as _aten
from ._library import dispatch as _dispatch
from ._library import registry
from ._library.operators import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "load_library", "loaded_libraries"]

loaded_libraries: set[str] = set()


def _enter_range(name: str, args: str | None = None) -> Any:
    """Starts a range of a profile; returns the handle that ends it."""
    return record_function(name, args).__enter__()


def _exit_range(handle: Any) -> None:
    """Ends a range of a profile."""
    handle.__exit__()


# Overloads, of which PyTorch's record_function calls these.
_enter_range.default = _enter_range
_exit_range.default = _exit_range._RecordFunction = _exit_range
_PROFILER = {
    "_record_function_enter": _enter_range,
    "_record_function_enter_new": _enter_range,
    "_record_function_exit": _exit_range,
}


class OperatorName:
    """The name of one of PyTorch's operators, a key of counts (CommDebugMode, FlopCounterMode). It is not called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__


_COLLECTIVES = {
    "c10d": (
        "_allgather_base_ _reduce_scatter_base_ allgather_ allgather_coalesced_ allreduce_ allreduce_coalesced_ alltoall_ alltoall_base_ "
        "broadcast_ gather_ reduce_ reduce_scatter_ scatter_"
    ).split(),
    "c10d_functional": "all_gather_into_tensor all_reduce all_to_all_single broadcast reduce_scatter_tensor".split(),
}
_collectives = {
    (space, name): OperatorName(f"{space}.{name}") for space, names in _COLLECTIVES.items() for name in names
}


# Modules that define a namespace's operators, imported at its first use.
_DEFINED_LATE = {
    "higher_order": "._higher_order_ops.control",
    "onednn": "._quantized.onednn", "quantized": "._quantized.operators", "quantized_decomposed": "._quantized.decomposed",
}  # fmt: skip


def define(namespace: str) -> None:
    """Imports the module that defines the operators of a namespace, if there is one and it has not been imported."""
    if namespace in _DEFINED_LATE:
        importlib.import_module(_DEFINED_LATE.pop(namespace), __package__)


class _Namespace:
    """The operators of a namespace as attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        define(self.name)
        found = registry.packet(self.name, name)
        if found is None and self.name == "aten":
            found = _aten.packet(name)
        if found is None and self.name == "teletensor":
            found = _dispatch.engine_packet(name)
        if found is None and self.name == "higher_order":
            found = _operator.OPERATORS.get(name)
        if found is None and self.name == "profiler":
            found = _PROFILER.get(name)
        if found is None:
            found = _collectives.get((self.name.removeprefix("_") if self.name == "_c10d_functional" else self.name, name))
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        define(self.name)
        names = registry.names(self.name) + (_aten.names() if self.name == "aten" else [])
        names += _dispatch.engine_names() if self.name == "teletensor" else []
        names += _operator.OPERATORS if self.name == "higher_order" else _PROFILER if self.name == "profiler" else ()
        space = self.name.removeprefix("_") if self.name == "_c10d_functional" else self.name
        return sorted({*names, *_COLLECTIVES.get(space, ())})

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self))

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}'>"


_namespaces: dict[str, _Namespace] = {}


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.ops' has no attribute {name!r}")
    return _namespaces.setdefault(name, _Namespace(name))


def __dir__() -> list[str]:
    spaces = {"aten", "higher_order", "profiler", "teletensor", *_DEFINED_LATE, *_COLLECTIVES, *registry.namespaces()}
    return sorted({*__all__, *spaces, *_namespaces})


# Compiled libraries whose operators teletensor computes itself, by the names of their files: modules that define them.
_COMPILED = {"_torchaudio": "._audio_operators", "libtorchaudio": "._audio_operators"}


def load_library(path: Any) -> None:
    """Defines the operators of torchaudio's library, which teletensor computes itself.

    Raises:
        OSError: the library is another one: compiled operators need PyTorch's own library. Or a path to a file that does not exist.
    """
    name = pathlib.PurePath(path).name.partition(".")[0]
    if name not in _COMPILED:
        raise OSError(f"Could not load this library: {path}: teletensor runs no operators compiled for PyTorch")
    if pathlib.PurePath(path).name != str(path) and not pathlib.Path(path).exists():
        raise OSError(f"{path}: cannot open shared object file: No such file or directory")
    importlib.import_module(_COMPILED[name], __package__)
