"""wrap(): functions that tracing does not enter."""

from __future__ import annotations

import inspect
from typing import Any, Callable

# The functions that wrap() registered: by the id of the module's globals and the name, the globals.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Registers a global function of the calling module as one that tracing does not enter: its calls become nodes.

    Call it at the top level of the module, with the function, its name or a builtin's name, or use it as a decorator.

    Raises:
        RuntimeError: the argument is neither a function nor a name.
        NotImplementedError: it is not called at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    caller = inspect.currentframe().f_back
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


wrap.__module__ = "teletensor.fx._patching"  # in pickled graphs
