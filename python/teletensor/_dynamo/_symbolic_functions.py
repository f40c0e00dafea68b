"""Calls of torch.sym_not(), sym_ite(), sym_float() and the like, and of abs(), in captured functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .._toplevel import symbols
from ._builtin_numbers import number_constructor
from ._comparisons import fold
from ._handlers import handlers
from ._symbols import is_symbolic_operand
from ._values import ComputedFloat, Constant, SymbolValue, Value

# By function: how the generated code computes it of a number, and the function that does so.
_FLOATS: dict[Callable, tuple[str, Callable]] = {symbols.sym_float: ("float({})", float), symbols.sym_sqrt: ("math.sqrt({})", math.sqrt)}


def _float(function: Callable) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        value = ex.real(args[0] if args else kwargs["a"])
        found = value if function is symbols.sym_float and isinstance(value, ComputedFloat) else None
        found = found or ex.computed_float(*_FLOATS[function], value)
        return found or fold(function, ex.python_value(ex.plain(value)))

    return handler


def _extremum(name: str, function: Callable) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        a, b = (ex.as_number(ex.real(v)) for v in (*args, *kwargs.values()))
        if is_symbolic_operand(a) and is_symbolic_operand(b):
            return ex.operation(name, a, b)
        found = ex.computed_float(f"{name}(float({{}}), float({{}}))", lambda m, n: function(float(m), float(n)), a, b)
        return found or fold(function, *(ex.python_value(ex.plain(v)) for v in (a, b)))

    return handler


def _not(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Constant(not ex.truth(args[0] if args else kwargs["a"]))


def _ite(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition, t, f = [*args, *(kwargs[k] for k in ("b", "t", "f")[len(args) :])]
    return t if ex.truth(condition) else f


def _sum(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    items = args if len(args) > 1 else ex.elements(args[0] if args else kwargs["args"])
    return functools.reduce(lambda a, b: ex.binary("+", a, b), items, Constant(0))


def _abs(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = ex.as_number(ex.real(args[0])) if len(args) == 1 and not kwargs else None
    if isinstance(value, SymbolValue):
        return ex.operation("max", value, ex.operation("neg", value))
    found = ex.computed_float("abs({})", abs, value) if isinstance(value, ComputedFloat) else None
    return found or _abs_of_others(ex, args, kwargs)


_abs_of_others = handlers[abs]
handlers[abs] = _abs
SYMBOLIC_FUNCTIONS: dict[Callable, Callable] = {
    **{function: _float(function) for function in _FLOATS},
    symbols.sym_max: _extremum("max", symbols.sym_max), symbols.sym_min: _extremum("min", symbols.sym_min),
    symbols.sym_not: _not, symbols.sym_ite: _ite, symbols.sym_sum: _sum, symbols.sym_int: number_constructor(int),
}  # fmt: skip
