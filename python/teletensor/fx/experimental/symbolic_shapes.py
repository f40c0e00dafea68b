"""Symbolic sizes: questions about them, and errors of programs that depend on data or on sizes; PyTorch's module of the same name.

A comparison of sizes of a trace (torch.SymInt) or of an exported graph is a SymBool, which these functions decide: runs are required to
have its outcome. Comparisons of numbers that depend on values of tensors are decided only where that follows from what the program has
checked; guard_or_false() and the like ask whether it does.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from ..._C import SymInt, Tensor, peek_symbolic_int
from ..._ops.assertions import _check
from ..._options import reject_values
from ..._symbolic_bool import SymBool
from ..._symbolic_float import SymFloat

__all__ = [
    "ConstraintViolationError", "DimConstraint", "DimDynamic", "EqualityConstraint", "GuardOnDataDependentSymNode",
    "RelaxedUnspecConstraint", "ShapeEnv", "StatefulSymbolicContext", "StatelessSymbolicContext", "StrictMinMaxConstraint",
    "SymIntSymbolicContext", "SymbolicContext", "canonicalize_bool_expr", "check_consistent", "constrain_range", "constrain_unify",
    "definitely_false", "definitely_true", "expect_true", "free_symbols", "free_unbacked_symbols", "guard_bool", "guard_float",
    "guard_int", "guard_or_false", "guard_or_true", "guard_scalar", "guard_size_oblivious", "guarding_hint_or_throw",
    "has_free_symbols", "has_free_unbacked_symbols", "has_guarding_hint", "has_hint", "has_static_value",
    "has_symbolic_sizes_strides", "hint_int", "is_accessor_node", "is_concrete_bool", "is_concrete_float", "is_concrete_int",
    "is_nested_int", "is_symbolic", "optimization_hint", "parallel_and", "parallel_or", "statically_known_false",
    "statically_known_true", "sym_and", "sym_eq", "sym_or",
]  # fmt: skip


class ConstraintViolationError(RuntimeError):
    """A size that was declared dynamic must have one value, or values of a smaller range."""


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818 - PyTorch's name
    """Python code needs the value of a tensor that is computed by the recorded program."""


class ShapeEnv:
    """The sizes of a symbolic graph's example, by symbol, and the comparisons of sizes that the graph relies on.

    Attributes:
        var_to_val: the example's sizes by symbol.
        guards: the comparisons, as text.
    """

    def __init__(self, sizes: dict[str, int] | None = None, guards: list[str] | None = None) -> None:
        self.var_to_val, self.guards = dict(sizes or {}), list(guards or [])

    def format_guards(self, verbose: bool = False) -> str:
        """The comparisons, one per line. `verbose` adds the symbols with their sizes in the example."""
        lines = [f" - {g}" for g in self.guards]
        return "\n".join([*lines, *(f" - {n} == {v} in the example" for n, v in self.var_to_val.items())] if verbose else lines)

    def create_unbacked_symint(self) -> Any:
        """Raises NotImplementedError: numbers that depend on values come from item() and nonzero() in a recorded function."""
        raise NotImplementedError("[ShapeEnv] numbers that depend on values come from item() and nonzero() in a recorded function")

    create_unbacked_symfloat = create_unbacked_symbool = create_symintnode = create_unbacked_symint


# ---- Kinds of numbers


def _is_condition(a: Any) -> bool:
    """Whether a comparison depends on values of tensors (_numbers.py)."""
    return getattr(type(a), "is_condition", False)


def _is_unbacked(a: Any) -> bool:
    return getattr(type(a), "is_unbacked", False)


def _has_recipe(a: Any) -> bool:
    """Whether a number was computed from sizes or values of a recorded function (_sizes.py, _numbers.py)."""
    return hasattr(type(a), "recipe") or _is_unbacked(a) or "recipe" in getattr(a, "__dict__", ())


def is_symbolic(val: Any) -> bool:
    """Whether a number or comparison may differ from run to run."""
    return type(val) in (SymInt, SymFloat, SymBool) or _is_condition(val) or _has_recipe(val)


def is_concrete_int(a: Any) -> bool:
    """Whether an int is the same in all runs."""
    return _is_concrete(a, int, SymInt)


def is_concrete_float(a: Any) -> bool:
    """Whether a float is the same in all runs."""
    return _is_concrete(a, float, SymFloat)


def is_concrete_bool(a: Any) -> bool:
    """Whether a bool is the same in all runs."""
    return _is_concrete(a, bool, SymBool)


def _is_concrete(a: Any, kind: type, symbolic: type) -> bool:
    if not isinstance(a, (kind, symbolic)):
        raise AssertionError(f"Expected {kind.__name__}, got {type(a)}")
    return not is_symbolic(a)


def has_static_value(a: Any) -> bool:
    """Whether a number or bool is the same in all runs."""
    if not isinstance(a, (bool, int, float, SymInt, SymFloat, SymBool)):
        raise AssertionError(f"Expected BoolLike/FloatLike/IntLike, got {type(a)}")
    return not is_symbolic(a)


def is_nested_int(s: Any) -> bool:
    """Whether an int stands for the lengths of a nested tensor: never, they have no number."""
    return False


# ---- Comparisons


def _known(a: Any) -> bool | None:
    """The outcome of a comparison that it has in all runs; None if that is not known. Nothing is required."""
    if not _is_condition(a):
        return guard_bool(a)
    a.owner.unused.pop(id(a), None)
    return a.owner.facts.outcome(a)


def statically_known_true(x: Any) -> bool:
    """Whether a comparison is known to be true in all runs."""
    return _known(x) is True


def statically_known_false(x: Any) -> bool:
    """Whether a comparison is known to be false in all runs."""
    return _known(x) is False


definitely_true, definitely_false = statically_known_true, statically_known_false


def guard_or_false(a: Any) -> bool:
    """The outcome of a comparison; False if it depends on values and does not follow from what the program has checked."""
    return _known(a) is True


def guard_or_true(a: Any) -> bool:
    """The outcome of a comparison; True if it depends on values and does not follow from what the program has checked."""
    return _known(a) is not False


def guard_bool(a: Any) -> bool:
    """bool(a), which runs are required to give."""
    if not isinstance(a, (bool, SymBool)):
        raise AssertionError(f"Expected bool, got {type(a)}")
    return bool(a)


def guard_size_oblivious(expr: Any) -> bool:
    """bool(expr): sizes of 0 and 1 are not assumed away, so that it is exact for them."""
    return guard_bool(expr)


def guard_int(a: Any) -> int:
    """int(a), which runs are required to have."""
    if not isinstance(a, (int, SymInt)):
        raise AssertionError(f"Expected int, got {type(a)}")
    return int(a)


def guard_float(a: Any) -> float:
    """float(a), which runs are required to have."""
    if not isinstance(a, (float, SymFloat)):
        raise AssertionError(f"Expected float, got {type(a)}")
    return float(a)


def guard_scalar(a: Any) -> Any:
    """guard_bool(), guard_int() or guard_float() of a number."""
    for kinds, guard in (((bool, SymBool), guard_bool), ((int, SymInt), guard_int), ((float, SymFloat), guard_float)):
        if isinstance(a, kinds):
            return guard(a)
    raise AssertionError(f"unrecognized scalar {a}")


def expect_true(a: Any, skip: int = 0) -> bool:
    """torch._check(a): runs raise RuntimeError unless it holds. `skip` selects the line in PyTorch's message."""
    _check(a)
    return True


def sym_and(x: Any, *others: Any) -> Any:
    """x and each of the others."""
    return _joined(operator.and_, all, x, *others)


def sym_or(x: Any, *others: Any) -> Any:
    """x or one of the others."""
    return _joined(operator.or_, any, x, *others)


def _joined(function: Any, of_bools: Any, *values: Any) -> Any:
    if len(values) == 1 or all(type(v) in (bool, SymBool) for v in values):
        return reduce(function, values)
    return of_bools([bool(v) for v in values])


parallel_and, parallel_or = sym_and, sym_or


def sym_eq(x: Any, y: Any) -> Any:
    """x == y; of lists and tuples: whether they have equal lengths and elements."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and reduce(operator.and_, map(sym_eq, x, y), True)
    if isinstance(x, (int, SymInt)) and isinstance(y, (int, SymInt)):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def check_consistent(new: Any, old: Any) -> None:
    """Raises RuntimeError if tensors have different sizes, or numbers different values. Other objects are not compared."""
    numbers = (int, float, SymInt, SymFloat)
    if isinstance(new, Tensor):
        if not isinstance(old, Tensor):
            raise AssertionError(f"Expected Tensor, got {type(old)}")
        same = old.dim() == new.dim() and all(i == j for i, j in zip(old.shape, new.shape))
        _check(same, lambda: f"{old.shape} != {new.shape} (old != new)")
    elif isinstance(new, numbers) and not isinstance(new, bool):
        if not isinstance(old, numbers) or isinstance(old, bool):
            raise AssertionError(f"{old} != {new}")
        _check(old == new, lambda: f"{old} != {new} (old != new)")


def canonicalize_bool_expr(expr: Any) -> Any:
    """The comparison itself: those of this package have one form."""
    return expr


# ---- Ranges


def constrain_range(a: Any, *, min: int | None, max: int | None = None) -> None:  # noqa: A002 - PyTorch's names
    """Requires that min <= a <= max; None is no limit.

    Raises:
        ValueError: an int is outside of the range, or min > max.
    """
    if min is not None and max is not None and max < min:
        raise ValueError(
            "Maximum value to constrain_as_size can't be less than the specified min value, "
            f"received min={min} and max={max}"
        )
    if not is_symbolic(a):
        if min is not None and a < min or max is not None and a > max:
            raise ValueError(f"Invalid value {a} for range [{min}:{max}]")
        return
    for bound, holds in ((min, operator.ge), (max, operator.le)):
        if bound is not None:
            _check(holds(a, bound))


def constrain_unify(a: Any, b: Any) -> None:
    """Requires that two ints are equal."""
    if not is_symbolic(a) and not is_symbolic(b):
        if a != b:
            raise AssertionError(f"Expected {a} == {b}")
        return
    _check(a == b)


# ---- Examples


def has_guarding_hint(a: Any) -> bool:
    """Whether a number has a value in the example: not one that depends on values of tensors."""
    return not _is_unbacked(a) and not _is_condition(a)


has_hint = has_guarding_hint


def guarding_hint_or_throw(a: Any) -> Any:
    """The number in the example, of which no run is required.

    Raises:
        GuardOnDataDependentSymNode: it depends on values of tensors.
    """
    if not has_guarding_hint(a):
        raise GuardOnDataDependentSymNode("Could not extract specialized integer from data-dependent expression")
    return _hint(a)


def _hint(a: Any) -> Any:
    if type(a) is SymInt:
        return peek_symbolic_int(a)
    return a.value if type(a) is SymFloat else a._value if type(a) is SymBool else a.plain() if hasattr(a, "plain") else a


def optimization_hint(a: Any, fallback: int | None = None) -> int:
    """The number in the example, of which no run is required; `fallback` if it depends on values of tensors."""
    if has_guarding_hint(a):
        return _hint(a)
    if fallback is None:
        raise GuardOnDataDependentSymNode("Could not extract specialized integer from data-dependent expression")
    return fallback


hint_int = optimization_hint


# ---- Symbols


def _numbers_in(val: Any) -> Iterator[Any]:
    """The numbers in containers, and those among the sizes of tensors."""
    if isinstance(val, (tuple, list)):
        for item in val:
            yield from _numbers_in(item)
    elif isinstance(val, Tensor):
        yield from val.shape
    elif val is not None:
        yield val


def _sources(number: Any) -> Iterator[Any]:
    """The sizes and values that a number was computed from."""
    if _is_condition(number):
        yield from _sources(number.left)
        yield from _sources(number.right)
    elif type(number) is SymInt:
        yield number
    elif type(number) is SymFloat:
        yield from number._sizes
    elif type(number) is SymBool:
        for comparison in number.comparisons():
            for operand in comparison.operands:
                yield from _sources(operand)
    elif _has_recipe(number):
        if number.recipe[0] in ("size", "stride", "offset", "input", "item"):
            yield number
        else:
            for operand in number.recipe[1:]:
                yield from _sources(operand)


def _name(number: Any) -> str:
    if type(number) is SymInt:
        raise NotImplementedError("[free_symbols] sizes of a trace have no names; use has_free_symbols()")
    kind, node, *dim = number.recipe
    known = number.owner.name_of(node, *dim) if _is_unbacked(number) else None
    return known or (f"{node}.size()[{dim[0]}]" if kind == "size" else f"{node}.{kind}")


def free_symbols(val: Any) -> set[str]:
    """The names of the sizes and values that numbers, and sizes of tensors, were computed from. Names are strings."""
    return {_name(s) for number in _numbers_in(val) for s in _sources(number)}


def free_unbacked_symbols(x: Any) -> set[str]:
    """free_symbols() of numbers that depend on values of tensors."""
    return {_name(s) for number in _numbers_in(x) for s in _sources(number) if _is_unbacked(s)}


def has_free_symbols(val: Any) -> bool:
    """Whether a number, or a size of a tensor, may differ from run to run."""
    return any(True for number in _numbers_in(val) for _ in _sources(number))


def has_free_unbacked_symbols(x: Any) -> bool:
    """Whether a number, or a size of a tensor, depends on values of tensors."""
    return any(_is_unbacked(s) for number in _numbers_in(x) for s in _sources(number))


def has_symbolic_sizes_strides(elem: Tensor) -> bool:
    """Whether a size of a tensor may differ from run to run."""
    return has_free_symbols(elem)


def is_accessor_node(node: Any) -> bool:
    """Whether a node of a graph reads the sizes, strides or offset of a tensor, or an element of those."""
    if node.op == "call_method":
        return isinstance(node.args[0].meta.get("example_value", node.args[0].meta.get("val")), Tensor) and node.target in (
            "size", "stride", "storage_offset", "item",
        )  # fmt: skip
    return node.op == "call_function" and getattr(node.target, "__name__", "").split(".")[0] in (
        "sym_size", "sym_stride", "sym_storage_offset", "sym_numel",
    )  # fmt: skip


# ---- Which sizes differ


class DimDynamic(enum.Enum):
    """How a size of an example becomes a symbol."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    UNBACKED = 3
    INFER_STRIDE = 4


@dataclass(frozen=True)
class Constraint:
    """What a size must satisfy. `warn_only`: only warn if it does not."""

    warn_only: bool


@dataclass(frozen=True)
class StrictMinMaxConstraint(Constraint):
    """A size has all values of a range: an object with the attributes `lower` and `upper`, or a pair."""

    vr: Any


@dataclass(frozen=True)
class RelaxedUnspecConstraint(Constraint):
    """A size has several values."""


@dataclass(frozen=True)
class EqualityConstraint(Constraint):
    """Sizes are equal to others, or computed from them."""

    source_pairs: list
    derived_equalities: list
    phantom_symbols: list
    relaxed_sources: set


DimConstraint = StrictMinMaxConstraint | RelaxedUnspecConstraint | None


class SymbolicContext:
    """How the sizes of an example become symbols."""


@dataclass(frozen=True)
class SymIntSymbolicContext(SymbolicContext):
    """How an int becomes a symbol."""

    constraint: Any


@dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    """How each size of a tensor becomes a symbol: a DimDynamic and perhaps a constraint for each dimension."""

    dynamic_sizes: Any
    dynamic_strides: Any = None
    constraint_sizes: Any = None
    constraint_strides: Any = None
    specialize_on: Any = None
    view_base_context: Any = None
    shape_ids: Any = None
    unbacked_bounds: Any = None

    def __post_init__(self) -> None:
        reject_values(
            type(self).__name__, "sizes of a graph are found by recording it for several", specialize_on=self.specialize_on,
            view_base_context=self.view_base_context, shape_ids=self.shape_ids, unbacked_bounds=self.unbacked_bounds,
        )  # fmt: skip
        ranks = len(self.dynamic_sizes)
        for name, value in (
            ("dynamic_strides", DimDynamic.INFER_STRIDE), ("constraint_sizes", None), ("constraint_strides", None),
        ):  # fmt: skip
            if getattr(self, name) is None:
                object.__setattr__(self, name, [value] * ranks)


@dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    """A StatelessSymbolicContext with the name of the tensor, and symbols that are used again."""

    tensor_source: Any = None
    shape_env_to_source_to_symbol_cache: dict = field(default_factory=dict)
    excluded_sizes: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tensor_source is None:
            raise AssertionError("expected tensor_source")
