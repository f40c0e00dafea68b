"""torch.jit: TorchScript's annotations and functions.

Annotated code runs like all other code: the engine receives the operators that it issues. save() writes exported programs.
"""

import builtins
from typing import Any, Callable, Final

from .._lazy import lazy_attributes
from ..futures import Future
from ..nn import Module
from . import _state
from ._settings import (
    enable_onednn_fusion, onednn_fusion_enabled, optimized_execution, set_fusion_strategy, set_module, strict_fusion,
)  # fmt: skip
from ._trace import _flatten, _get_trace_graph, _unique_state_dict  # noqa: F401 - names that libraries import
from .._tracing_state import _is_tracing as is_tracing
from ._files import load, save
from ._frozen import FrozenModule
from ._script import (
    Example, RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule, TracedModule, export_opnames,
)  # fmt: skip
from ._types import (
    Attribute, CompilationUnit, Error, RecursiveScriptClass, ScriptWarning, TracerWarning, TracingCheckError,
    jit_module_from_flatbuffer, last_executed_optimized_graph, save_jit_module_to_flatbuffer,
)  # fmt: skip

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule", "annotate",
    "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "ignore", "interface", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing", "set_fusion_strategy",
    "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip


# Imported at its first use: a thread that imports the package does not wait for one that imports the module.
__getattr__, __dir__ = lazy_attributes(globals(), ("annotations",))


def _unwrap_optional(x: Any) -> Any:
    """The argument, which must not be None; scripted functions tell TorchScript so."""
    assert x is not None, "Unwrapping null optional"
    return x


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Returns a ScriptModule of a module, or a ScriptFunction of a function; classes are returned as they are.

    Both run as Python, and are captured for their first arguments when they are saved. The other arguments have no effect.

    Args:
        example_inputs: arguments of calls, the first of which is used for save(): a list of tuples, or a dict of them by module.
    """
    if not _state._enabled or builtins.isinstance(obj, (ScriptModule, ScriptFunction)):
        return obj
    if builtins.isinstance(obj, Module):
        given = example_inputs.get(obj) if builtins.isinstance(example_inputs, dict) else example_inputs
        return RecursiveScriptModule(obj, Example(tuple(given[0]), {}) if given else None)
    if builtins.isinstance(obj, type) or not callable(obj):
        return obj
    return ScriptFunction(obj, Example(tuple(example_inputs[0]), {}) if example_inputs else None)


class _Modifier(str):
    """What a decorator says about a function for TorchScript's compiler, which does not exist here."""


def _modified(fn: Callable, text: str) -> Callable:
    if callable(fn) and hasattr(fn, "__dict__"):
        fn._torchscript_modifier = _Modifier(text)
    return fn


def export(fn: Callable) -> Callable:
    """Marks a method, which a ScriptModule has as all others, and returns it. Files contain forward only."""
    return _modified(fn, "export (compile this function even if nothing calls it)")


def unused(fn: Any) -> Any:
    """Marks a function or property and returns it: a call runs as Python, as outside of TorchScript in PyTorch."""
    if builtins.isinstance(fn, property):
        _modified(fn.fget, "unused (ignored and replaced with raising of an exception)")
        return fn
    return _modified(fn, "unused (ignored and replaced with raising of an exception)")


def interface(obj: type) -> type:
    """Returns the class itself."""
    return obj


def _same(fn: Callable) -> Callable:
    return fn


script_if_tracing = script_method = _overload = _overload_method = _script_if_tracing = _same


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Returns a ScriptModule with copies of the parameters as constants: it has no parameters, and no attributes but those of
    `preserved_attrs`. ``optimize_numerics`` has no effect: the engine folds constants.

    Raises:
        RuntimeError: mod is no ScriptModule, or in training mode.
    """
    if not builtins.isinstance(mod, RecursiveScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return FrozenModule(mod._original, mod._example, preserved_attrs or [])


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """freeze() of the module in evaluation mode; the engine optimizes Programs when they run.

    Args:
        other_methods: attributes that are kept.
    """
    if not builtins.isinstance(mod, RecursiveScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    return mod if builtins.isinstance(mod, FrozenModule) else freeze(mod.eval(), other_methods)


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Does nothing: the engine optimizes Programs when they run."""


def wait(future: Any) -> Any:
    """Returns its argument, because fork() returns the result instead of a future."""
    return future


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function and returns it; also usable as a decorator with an argument. A call runs as Python; what the function calls is
    part of saved programs. ``drop_on_export`` is the older name of ``drop``; neither has an effect."""
    if unknown := kwargs.keys() - {"drop_on_export"}:
        raise TypeError(f"ignore() got unexpected keyword arguments: {', '.join(sorted(unknown))}")
    text = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    return _modified(drop, text) if callable(drop) else lambda fn: _modified(fn, text)


def trace(
    func: Callable, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> Callable:  # fmt: skip
    """Returns a ScriptModule of a module, or a ScriptFunction of a function, which is saved for these arguments.

    Unlike a trace in PyTorch, each call evaluates the control flow, and nothing is called before. The other arguments have no effect.

    Args:
        example_inputs: a tuple of arguments, or a tensor.
        example_kwarg_inputs: keyword arguments instead.
    """
    if not _state._enabled:
        return func
    example = None
    if example_kwarg_inputs is not None:
        example = Example((), dict(example_kwarg_inputs))
    elif example_inputs is not None:
        example = Example(example_inputs if builtins.isinstance(example_inputs, tuple) else
                          tuple(example_inputs) if builtins.isinstance(example_inputs, list) else (example_inputs,), {})  # fmt: skip
    if builtins.isinstance(func, (RecursiveScriptModule, ScriptFunction)):
        func.__dict__["_example"] = func._example or example
        return func
    if builtins.isinstance(func, Module):
        return TopLevelTracedModule(func, example)
    return ScriptFunction(func, example)


def trace_module(
    mod: Module, inputs: Any, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True,
) -> Module:  # fmt: skip
    """Returns a ScriptModule like trace(), for a dict of arguments by the names of methods. Files contain forward only."""
    given = inputs.get("forward") if builtins.isinstance(inputs, dict) else inputs
    if example_inputs_is_kwarg:
        return trace(mod, example_kwarg_inputs=given)
    return trace(mod, given)


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
