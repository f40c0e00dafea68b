"""Symbolic numbers: integers, floats and bools that a traced function has computed from sizes."""

from __future__ import annotations

import builtins
import enum
import math
import numbers
from typing import Any

from .._C import SymInt
from .._symbolic_bool import SymBool
from .._symbolic_float import SymFloat

numbers.Integral.register(SymInt)


Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise "
    "nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
    start=0,
    module="teletensor",
)
Tag.__doc__ = "Properties of operators, for torch.library."


def _is_unbacked(a: Any) -> bool:
    """Whether a number depends on values of a tensor whose computation is recorded (fx/experimental/_sizes.py)."""
    return getattr(type(a), "is_unbacked", False)


def sym_int(a: Any) -> int:
    """int(a); an int that a recording computes itself."""
    if type(a) is SymBool:
        return a.as_int()
    if hasattr(type(a), "__sym_sqrt__") and isinstance(a, builtins.float):  # a float of sizes of a recording
        return a.__trunc__()
    return a if isinstance(a, SymInt) or isinstance(a, int) and _is_unbacked(a) else builtins.int(a)


def sym_float(a: Any) -> float:
    """float(a); a float that the Program of a trace computes itself."""
    if isinstance(a, SymFloat):
        return a
    if type(a) is SymBool:
        return a.__sym_float__()
    if hasattr(type(a), "as_float"):
        return a.as_float()
    if isinstance(a, SymInt):
        return SymFloat.of("float", a)
    return a.as_float() if _is_unbacked(a) else builtins.float(a)


def sym_not(a: Any) -> Any:
    """not a; a SymBool if a is one."""
    if type(a) is SymBool:
        return a.__sym_not__()
    return a.negated() if getattr(type(a), "is_condition", False) else not a


def _extremum(function: Any, a: float, b: float) -> float:
    if (_is_unbacked(a) or _is_unbacked(b)) and isinstance(a, (int, float)) and isinstance(b, (int, float)):
        number = a if _is_unbacked(a) else b
        return number.extremum("sym_max" if function is builtins.max else "sym_min", a, b)
    if isinstance(a, SymInt) and isinstance(b, (int, SymInt)):
        return a.__sym_max__(b) if function is builtins.max else a.__sym_min__(b)
    if isinstance(b, SymInt) and isinstance(a, int):
        return _extremum(function, b, a)
    numbers = {type(a), type(b)}
    if SymFloat in numbers or SymInt in numbers and builtins.float in numbers:
        return SymFloat.of("max" if function is builtins.max else "min", sym_float(a), sym_float(b))
    for value in (a, b):
        if not isinstance(value, (int, float, SymInt)):
            raise AssertionError(f"expected an int or a float, got {type(value)}")
    either_float = isinstance(a, float) or isinstance(b, float)
    return float(function(a, b)) if either_float else function(a, b)


def sym_max(a: float, b: float) -> float:
    """The larger number, as a float if either is a float."""
    return _extremum(builtins.max, a, b)


def sym_min(a: float, b: float) -> float:
    """The smaller number, as a float if either is a float."""
    return _extremum(builtins.min, a, b)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t if b else f; t and f must have the same type."""
    if not isinstance(b, (builtins.bool, SymBool)):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    kinds = ((builtins.bool, SymBool), (int, SymInt), (builtins.float, SymFloat))
    if type(t) is not type(f) and not any(isinstance(t, kind) and isinstance(f, kind) for kind in kinds):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return b.__sym_ite__(t, f) if type(b) is SymBool else t if b else f


def sym_sqrt(a: float) -> float:
    """math.sqrt(a); a float that the Program of a trace computes itself."""
    if hasattr(type(a), "__sym_sqrt__"):
        return a.__sym_sqrt__()
    return SymFloat.of("sqrt", a) if isinstance(a, (SymInt, SymFloat)) else math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, given separately or as one list."""
    return builtins.sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_fresh_size(expr: Any) -> int:
    """The number itself."""
    from .._functions import tensor

    return tensor(expr).item()


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raises RuntimeError unless min <= size <= max; None is no limit."""
    if _is_unbacked(size):
        from .._ops.assertions import _check

        if min is not None:
            _check(size >= min)
        if max is not None:
            _check(size <= max)
        return
    low, high = -(2**63) if min is None else min, 2**63 - 1 if max is None else max
    if high < low:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low}, max={high}")
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """sym_constrain_range from 0; ``max`` must be above 2."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)
