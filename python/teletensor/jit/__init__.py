"""torch.jit: what code is annotated with for TorchScript. Functions and modules stay what they are.

An engine's programs are made from the frames that eager code issues: annotated code runs as any other.
"""

import builtins
from typing import Any, Callable, Final

from ..nn import Module
from . import annotations

__all__ = [
    "Final", "ScriptFunction", "ScriptModule", "annotate", "annotations", "export", "fork", "freeze", "ignore",
    "is_scripting", "is_tracing", "isinstance", "optimize_for_inference", "script", "script_if_tracing",
    "script_method", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

ScriptModule = Module
ScriptFunction = type(lambda: None)


def script(obj: Any = None, *args: Any, **options: Any) -> Any:
    """The function, class or module itself."""
    return obj


export = script_if_tracing = script_method = freeze = optimize_for_inference = wait = script


def ignore(drop: Any = False, **options: Any) -> Any:
    """The function itself, also as a decorator with options."""
    return drop if callable(drop) else script


unused = ignore


def trace(func: Callable, example_inputs: Any = None, *args: Any, **options: Any) -> Callable:
    """The function or module itself: it goes on looking at its inputs, where PyTorch's would have looked once."""
    return func


trace_module = trace


def fork(func: Callable, *args: Any, **options: Any) -> Any:
    """The function's result; wait() gives it back. Nothing here waits for the engine anyway."""
    return func(*args, **options)


def is_scripting() -> bool:
    """Always false."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001 - PyTorch's name
    """Python's, where a generic type such as List[int] counts by what it is of all."""
    return builtins.isinstance(obj, getattr(target_type, "__origin__", target_type))
