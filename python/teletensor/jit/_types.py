"""Types of TorchScript's objects that do not exist here, and functions that use them."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._lazy import set_module


class Error(Exception):
    """An exception raised in TorchScript code."""


class TracerWarning(Warning):
    """A warning about code that a trace does not record."""


class ScriptWarning(Warning):
    """A warning about code that is compiled to TorchScript."""


class TracingCheckError(Exception):
    """A trace's results differ from those of the function."""

    def __init__(self, graph_diff_error: str | None, tensor_compare_error: str | None, extra_msg: str | None = None) -> None:
        self.message = f"Tracing failed sanity checks!\n{extra_msg or ''}\n{graph_diff_error or ''}\n{tensor_compare_error or ''}"
        super().__init__(self.message)


class Attribute(NamedTuple):
    """A module's attribute with its type, which is not checked."""

    value: Any
    type: Any


class _Unavailable:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"[jit.{type(self).__name__}] there is no TorchScript compiler")


class RecursiveScriptClass(_Unavailable):
    """The type of an instance of a class that script() compiled in PyTorch."""


class CompilationUnit(_Unavailable):
    """Functions compiled from TorchScript's source text."""


def _no_files(name: str) -> NotImplementedError:
    return NotImplementedError(f"[{name}] there are no flatbuffers of TorchScript; use torch.jit.save, which writes .pt2 archives")


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises NotImplementedError."""
    raise _no_files("jit.save_jit_module_to_flatbuffer")


def jit_module_from_flatbuffer(f: Any) -> Any:
    """Raises NotImplementedError."""
    raise _no_files("jit.jit_module_from_flatbuffer")


def last_executed_optimized_graph() -> Any:
    """Raises NotImplementedError."""
    raise NotImplementedError("[jit.last_executed_optimized_graph] there is no TorchScript, so there are no graphs")


set_module("teletensor.jit", CompilationUnit, Error)
set_module("teletensor.jit._script", Attribute)
