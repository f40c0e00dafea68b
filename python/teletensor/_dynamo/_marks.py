"""Marks on functions that say how they are compiled: disable, graph_break, the function inside a compiled one."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

DISABLED = "_torchdynamo_disable"
ORIGINAL = "_torchdynamo_orig_callable"
INLINE = "_torchdynamo_inline"

graph_breaks: dict[int, tuple[Callable, str]] = {}  # functions whose calls end a graph, with the reason
constant_results: dict[int, Callable] = {}
substitutes: dict[int, tuple[Callable, Callable]] = {}  # functions by the id of those that they replace in graphs

has_marked_tensors = False  # whether mark_dynamic() and the like were called in this process
registries: list[dict] = [constant_results, substitutes]  # of functions that users have registered


def change_captures() -> bool:
    """Whether calls such as allow_in_graph() or mark_dynamic() change how functions of this process are captured."""
    own = __name__.partition(".")[0]
    return has_marked_tensors or any(registries) or any(
        not str(getattr(f, "__module__", "")).startswith(f"{own}.") for f, _ in graph_breaks.values()
    )


def _own(function: Any) -> dict:
    try:
        return vars(function)
    except TypeError:
        return {}


def reason_not_to_compile(function: Any) -> str | None:
    """Why a call of a function ends the graph; None if it does not."""
    if id(function) in graph_breaks:
        return graph_breaks[id(function)][1]
    own = _own(function)
    if own.get(DISABLED):
        return f"{getattr(function, '__qualname__', type(function).__name__)} is disabled" + (
            f": {own['_torchdynamo_disable_msg']}" if own.get("_torchdynamo_disable_msg") else ""
        )
    return None


def inner_function(function: types.FunctionType) -> Callable | None:
    """The function to execute instead: that inside a compiled one, or a substitute."""
    if id(function) in substitutes:
        return substitutes[id(function)][1]
    return _own(function).get(ORIGINAL)
