"""torch.jit: TorchScript's annotations and functions. They return functions and modules unchanged.

Annotated code runs like all other code: the engine receives the operators that it issues.
"""

import builtins
from typing import Any, Callable, Final

from ..futures import Future
from ..nn import Module
from . import annotations
from ._settings import (
    enable_onednn_fusion, onednn_fusion_enabled, optimized_execution, set_fusion_strategy, set_module, strict_fusion,
)  # fmt: skip
from ._trace import _flatten, _get_trace_graph, _unique_state_dict  # noqa: F401 - names that libraries import
from ._tracing_state import _is_tracing as is_tracing
from ._types import (
    Attribute, CompilationUnit, Error, RecursiveScriptClass, RecursiveScriptModule, ScriptFunction, ScriptModule, ScriptWarning,
    TopLevelTracedModule, TracedModule, TracerWarning, TracingCheckError, export_opnames, jit_module_from_flatbuffer,
    last_executed_optimized_graph, load, run_frozen_optimizations, save, save_jit_module_to_flatbuffer,
)  # fmt: skip

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptClass", "RecursiveScriptModule", "ScriptFunction",
    "ScriptModule", "ScriptWarning", "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "annotate",
    "annotations", "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "jit_module_from_flatbuffer", "last_executed_optimized_graph", "load", "onednn_fusion_enabled",
    "optimize_for_inference", "optimized_execution", "run_frozen_optimizations", "save", "save_jit_module_to_flatbuffer",
    "script", "script_if_tracing", "script_method", "set_fusion_strategy", "set_module", "strict_fusion", "trace", "trace_module",
    "unused", "wait",
]  # fmt: skip


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Returns the function, class or module itself. The other arguments have no effect."""
    return obj


def export(fn: Callable) -> Callable:
    """Returns the function itself."""
    return fn


def interface(obj: type) -> type:
    """Returns the class itself."""
    return obj


script_if_tracing = script_method = unused = _overload = _overload_method = _script_if_tracing = export


def freeze(mod: Module, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Module:
    """Returns the module itself with all its attributes, so ``preserved_attrs`` has no effect."""
    return mod


def optimize_for_inference(mod: Module, other_methods: Any = None) -> Module:
    """Returns the module itself. ``other_methods`` has no effect."""
    return mod


def wait(future: Any) -> Any:
    """Returns its argument, because fork() returns the result instead of a future."""
    return future


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns the function itself; also usable as a decorator with an argument. ``drop_on_export`` is the older name of
    ``drop``; neither has an effect."""
    if unknown := kwargs.keys() - {"drop_on_export"}:
        raise TypeError(f"ignore() got unexpected keyword arguments: {', '.join(sorted(unknown))}")
    return drop if callable(drop) else export


def trace(
    func: Callable, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> Callable:  # fmt: skip
    """Returns the function or module itself. Unlike a trace in PyTorch, each call evaluates the control flow.

    The other arguments have no effect.
    """
    return func


def trace_module(
    mod: Module, inputs: Any, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True,
) -> Module:  # fmt: skip
    """Returns the module itself, like trace()."""
    return mod


def fork(func: Callable, *args: Any, **options: Any) -> Any:
    """Calls the function and returns its result. wait() accepts this result and returns it."""
    return func(*args, **options)


def is_scripting() -> bool:
    """Always False."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001 - PyTorch's name
    """Python's isinstance; a generic type such as List[int] is checked as its origin, list."""
    return builtins.isinstance(obj, getattr(target_type, "__origin__", target_type))
