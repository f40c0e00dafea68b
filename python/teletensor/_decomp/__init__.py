"""torch._decomp: the registry of decompositions: those of this package, and those that the program registers.

The engine computes operators with its own kernels. Decompositions are for programs that ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .decompositions import registered

__all__ = ["core_aten_decompositions", "decomposition_table", "get_decompositions", "register_decomposition"]

decomposition_table: dict[Any, Callable] = {}
global_decomposition_table = {"post_autograd": decomposition_table, "pre_autograd": {}, "meta": {}}


def _overloads(operator: Any) -> list:
    if hasattr(operator, "overloads"):
        return [operator, *(getattr(operator, name) for name in operator.overloads())]
    return [operator]


def register_decomposition(aten_op: Any, registry: dict | None = None, *, type: str = "post_autograd", unsafe: bool = False) -> Callable:  # noqa: A002
    """Adds the decorated function to a table as the decomposition of an operator, or of several."""
    table = global_decomposition_table[type] if registry is None else registry

    def add(function: Callable) -> Callable:
        for operator in aten_op if isinstance(aten_op, (list, tuple)) else (aten_op,):
            for overload in _overloads(operator):
                if overload in table:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                table[overload] = function
        return function

    return add


def get_decompositions(aten_ops: Iterable, type: str = "post_autograd") -> dict[Any, Callable]:  # noqa: A002
    """The registered decompositions of operators; an operator without one is left out."""
    table = global_decomposition_table[type]
    return {overload: table[overload] for op in aten_ops for overload in _overloads(op) if overload in table}


def remove_decompositions(decompositions: dict, aten_ops: Iterable) -> None:
    """Removes the decompositions of operators from a dict."""
    for operator in aten_ops:
        for overload in _overloads(operator):
            decompositions.pop(overload, None)


def core_aten_decompositions() -> dict[Any, Callable]:
    """A new dict of the decompositions of PyTorch's operators into its core operators, by overload.

    It contains the operators that have a decomposition here. Other programs' decompositions are not in it.
    """
    return dict(_core)


_core = dict(registered())
decomposition_table.update(_core)
