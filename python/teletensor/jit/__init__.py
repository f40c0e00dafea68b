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


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself. The other arguments choose how TorchScript compiles it; nothing is compiled."""
    return obj


def export(fn: Callable) -> Callable:
    """The function itself."""
    return fn


script_if_tracing = script_method = export


def freeze(mod: Module, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Module:
    """The module itself: nothing of it is left out, so that ``preserved_attrs`` are all there."""
    return mod


def optimize_for_inference(mod: Module, other_methods: Any = None) -> Module:
    """The module itself. ``other_methods`` names methods that would be optimized too."""
    return mod


def wait(future: Any) -> Any:
    """What fork() returned: the result itself."""
    return future


def ignore(drop: Any = False) -> Any:
    """The function itself, also as a decorator with an argument."""
    return drop if callable(drop) else export


unused = ignore


def trace(
    func: Callable, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, *, example_kwarg_inputs: Any = None,
) -> Callable:  # fmt: skip
    """The function or module itself: it goes on looking at its inputs, where PyTorch's would have looked once.

    The other arguments choose how a trace is made and compared with the function; there is no trace.
    """
    return func


def trace_module(
    mod: Module, inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True,
) -> Module:  # fmt: skip
    """The module itself, as trace()."""
    return mod


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
