"""torch._jit_internal: annotations of TorchScript that libraries import from here. They return their functions."""

from __future__ import annotations

from typing import Any, Callable, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035 - TorchScript's names

from .jit import _overload, _overload_method, export, ignore, is_scripting, unused
from .jit import isinstance as _isinstance
from .jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Callable", "Dict", "Final", "List", "Optional", "Tuple",
    "Union", "boolean_dispatch", "export", "ignore", "is_scripting", "unused",
]  # fmt: skip

_copy_to_script_wrapper = _drop = export
__all__ += ["_copy_to_script_wrapper", "_drop", "_isinstance", "_overload", "_overload_method"]


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable, if_false: Callable, module_name: str, func_name: str
) -> Callable:
    """Returns a function that calls `if_true` or `if_false`, by the argument `arg_name` at position `arg_index`."""

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatch.__name__, dispatch.__module__ = func_name, module_name
    return dispatch
