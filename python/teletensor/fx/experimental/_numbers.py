"""Number and Condition: numbers of a recording that depend on values of tensors, and comparisons of them.

A Number has the value of one recording, and its origin, from which the graph computes it. It is no int or float, so that functions in C
cannot read the value unnoticed. Python code that needs the value, or an outcome that is not the same for all values, raises
GuardOnDataDependentSymNode.
"""

from __future__ import annotations

import functools
import math
import operator
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ..._symbolic_bool import SymBool
from ._size_fit import NEGATED, Expression
from ._sizes import RecordedFloat, RecordedSize
from .symbolic_shapes import GuardOnDataDependentSymNode

COMPARISONS: dict[str, Callable] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "/": operator.truediv,
    "sym_max": max, "sym_min": min,
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
PACKAGES = (_PACKAGE, os.path.realpath(_PACKAGE) + os.sep)  # with the paths of this package's files begin


def is_number(value: Any) -> bool:
    """Whether a number depends on values of tensors."""
    return type(value) is Number


def guard_error(text: str) -> GuardOnDataDependentSymNode:
    """The error of Python code that needs a number, or the outcome of a comparison, that depends on values."""
    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression {text}: Python code branches on it, or uses the number, but the graph must serve "
        "all values. torch._check() can state what holds for all of them; torch.where() and torch.sym_min() choose by values"
    )


class Number:
    """An int or float that depends on values of tensors.

    Attributes:
        value: in this recording.
        recipe: ("item", node), ("size", node, dim), or an operation and its operands, which are numbers.
        owner: the numbers of the recording (_unbacked.Values).
    """

    is_unbacked = True

    def __init__(self, value: Any, recipe: tuple, owner: Any) -> None:
        self.value, self.recipe, self.owner = value, recipe, owner

    @property
    def __class__(self) -> type:  # for isinstance(); functions in C see that it is no int
        return type(self.value)

    def as_float(self) -> Number:
        """torch.sym_float(self)."""
        return self if type(self.value) is float else Number(float(self.value), ("float", self), self.owner)

    def refuse(self, *_args: Any) -> NoReturn:
        """Raises the error of code that needs the value."""
        raise self.owner.failed(guard_error(text_of(self)))

    def __index__(self) -> int:
        return int(self.owner.read(self, sys._getframe(1)))

    def __float__(self) -> float:
        return float(self.owner.read(self, sys._getframe(1)))

    def __bool__(self) -> bool:
        return bool(_compared("!=", self, 0))

    def __neg__(self) -> Number:
        return Number(-self.value, ("neg", self), self.owner)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return _extremum("sym_max", self, -self) if type(self.value) is int else self.refuse()

    def __round__(self, *digits: Any) -> Number:
        return self.refuse() if digits or type(self.value) is float else self

    def __ceil__(self) -> Number:
        return self.refuse() if type(self.value) is float else self

    __floor__ = __trunc__ = __ceil__

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if type(other) is int and 1 <= other <= 8 and modulo is None and type(self.value) is int:
            return functools.reduce(operator.mul, [self] * other)
        return NotImplemented if _is_tensor(other) else self.refuse()

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: dict) -> Number:
        return self

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self.value), name):  # real, is_integer and the like
            self.refuse()
        raise AttributeError(f"'{type(self.value).__name__}' object has no attribute '{name}'")

    @staticmethod
    def extremum(kind: str, a: Any, b: Any) -> Number:
        """torch.sym_max(a, b) or sym_min(a, b), of which one depends on values."""
        return _extremum(kind, a, b)


def _is_tensor(value: Any) -> bool:
    return hasattr(type(value), "__torch_function__")


def _known(value: Any) -> Any:
    """An operand as a number: an int or float as it is, a bool as an int; None for others."""
    if type(value) in (int, float, RecordedSize, Number):
        return value
    return int(value) if type(value) is bool else None


def _arithmetic(symbol: str, reflected: bool) -> Callable:
    def compute(self: Number, other: Any) -> Any:
        if type(other) is Condition:
            return self.refuse()
        if (other := _known(other)) is None:
            return NotImplemented
        a, b = (other, self) if reflected else (self, other)
        return Number(ARITHMETIC[symbol](value_of(a), value_of(b)), (symbol, a, b), self.owner)

    return compute


def _extremum(kind: str, a: Any, b: Any) -> Number:
    owner = a.owner if type(a) is Number else b.owner
    if _known(a) is None or _known(b) is None:
        raise owner.failed(guard_error(f"{kind} of a number and a {type(a).__name__} or {type(b).__name__}"))
    number = float if float in (type(value_of(a)), type(value_of(b))) else int
    if number is float:
        a, b = (v.as_float() if type(v) is Number else float(v) for v in (a, b))
    return Number(ARITHMETIC[kind](value_of(a), value_of(b)), (kind, a, b), owner)


def _compared(relation: str, left: Number, right: Any) -> Any:
    if type(right) is Condition:
        return left.refuse()
    if (right := _known(right)) is None:
        return NotImplemented
    return Condition(relation, left, right, left.owner)


for _symbol, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod"), ("/", "truediv")):
    setattr(Number, f"__{_name}__", _arithmetic(_symbol, False))
    setattr(Number, f"__r{_name}__", _arithmetic(_symbol, True))
for _symbol, _function in COMPARISONS.items():
    setattr(Number, f"__{_function.__name__}__", lambda self, other, relation=_symbol: _compared(relation, self, other))
for _name in (
    "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "invert", "rpow", "int", "complex", "str", "repr",
    "format", "hash", "reduce_ex",
):  # fmt: skip
    setattr(Number, f"__{_name}__", Number.refuse)


class Condition:
    """A comparison of numbers of which one depends on values. torch._check() makes it a check of the graph.

    Python code that needs its outcome raises GuardOnDataDependentSymNode unless the outcome is the same for all values.
    """

    is_condition = True

    def __init__(self, relation: str, left: Any, right: Any, owner: Any) -> None:
        self.relation, self.left, self.right, self.owner = relation, left, right, owner
        owner.unused[id(self)] = self

    @property
    def __class__(self) -> type:  # for isinstance()
        return bool

    @property
    def outcome(self) -> bool:
        """Whether it holds for the values of this recording."""
        return COMPARISONS[self.relation](value_of(self.left), value_of(self.right))

    def text(self) -> str:
        """The comparison as text."""
        return f"{text_of(self.left)} {self.relation} {text_of(self.right)}"

    def negated(self) -> Condition:
        """The opposite comparison, of ints; of floats, it would not be the opposite for nan."""
        if any(type(value_of(v)) is float for v in (self.left, self.right)) and self.relation not in ("==", "!="):
            raise self.owner.failed(guard_error(f"not ({self.text()})"))
        self.owner.unused.pop(id(self), None)
        return Condition(NEGATED[self.relation], self.left, self.right, self.owner)

    def __bool__(self) -> bool:
        self.owner.unused.pop(id(self), None)
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        return self.owner.decide(self, not frame.f_code.co_filename.startswith(PACKAGES))

    def require(self, message: Any) -> None:
        """Makes the graph raise RuntimeError unless the comparison holds."""
        self.owner.unused.pop(id(self), None)
        self.owner.require(self, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(bool(self), name)

    def __eq__(self, other: Any) -> Any:
        if type(other) in (bool, int) and other in (0, 1):
            self.owner.unused.pop(id(self), None)
            return Condition(self.relation, self.left, self.right, self.owner) if other else self.negated()
        return bool(self) == other

    def __ne__(self, other: Any) -> Any:
        if type(other) in (bool, int) and other in (0, 1):
            return self == (1 - other)
        return bool(self) != other


def _of_outcome(name: str) -> Callable:
    return lambda self, *args: getattr(bool(self), name)(*args)


for _name in (
    "lt", "le", "gt", "ge", "hash", "and", "rand", "or", "ror", "xor", "rxor", "invert", "int", "index", "float", "str", "repr",
    "format", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow",
    "neg", "pos", "abs", "reduce_ex", "complex", "lshift", "rlshift", "rshift", "rrshift", "round",
):  # fmt: skip
    setattr(Condition, f"__{_name}__", _of_outcome(f"__{_name}__"))


def value_of(value: Any) -> Any:
    """The number in this recording."""
    if type(value) is SymBool:
        return value._value
    return value.value if type(value) is Number else value.plain() if type(value) in (RecordedSize, RecordedFloat) else value


def operands_of(value: Any) -> list[Any]:
    """The numbers that a number was computed from."""
    return [] if type(value) not in (Number, RecordedSize) or value.recipe[0] in ("size", "input", "item") else list(value.recipe[1:])


def text_of(value: Any) -> str:
    """How a number was computed, as text. Numbers with the same text are equal."""
    if type(value) not in (Number, RecordedSize):
        return repr(value)
    if type(value) is RecordedSize:
        return value.log.text(value.number)
    kind, *operands = value.recipe
    if (name := value.owner.name_of(*operands) if kind in ("size", "item") else None):
        return name
    if kind in ("size", "input", "item"):
        part = getattr(operands[0].graph, "part_name", "")
        return f"{part}{operands[0]}." + (f"size()[{operands[1]}]" if kind == "size" else kind)
    if kind in ("neg", "float"):
        return f"-({text_of(operands[0])})" if kind == "neg" else f"float({text_of(operands[0])})"
    if kind in ("sym_max", "sym_min"):
        return f"{kind[4:]}({text_of(operands[0])}, {text_of(operands[1])})"
    left, right = (f"({text_of(o)})" if operands_of(o) else text_of(o) for o in operands)
    return f"{left} {kind} {right}"


def same_sizes(a: Any, b: Any) -> bool:
    """Whether sizes are known to be equal."""
    if len(a) != len(b):
        return False
    dependent = [is_number(m) or is_number(n) for m, n in zip(a, b)]
    return all(text_of(m) == text_of(n) if d else m == n for m, n, d in zip(a, b, dependent))


# ---- Proofs


class Facts:
    """What is known of the numbers of a recording: bounds of numbers that are no sums or products, and relations of sums to 0.

    Nothing in it follows from the values that the numbers have in the recording.

    Args:
        static: whether the sizes of the arguments are constants.
    """

    def __init__(self, static: bool) -> None:
        self.static = static
        self.ranges: dict[str, tuple[Any, Any]] = {}
        self.relations: list[tuple[str, Expression]] = []
        self.texts: set[str] = set()

    def expression(self, value: Any) -> Expression | None:
        """A number as a sum of multiples of others; None for floats."""
        if type(value) is int:
            return Expression({(): value})
        if type(value) not in (Number, RecordedSize) or type(value_of(value)) is float:
            return None
        if type(value) is RecordedSize and self.static:
            return Expression({(): value.plain()})
        kind, *operands = value.recipe
        parts = [self.expression(o) for o in operands_of(value)]
        if None in parts:
            return None
        if kind in ("+", "-"):
            return _sum(parts[0], parts[1], 1 if kind == "+" else -1)
        if kind == "neg":
            return _sum(Expression({}), parts[0], -1)
        if kind == "*" and any(set(p.terms) <= {()} for p in parts):
            a, b = parts if set(parts[1].terms) <= {()} else parts[::-1]
            return Expression({names: c * b.terms.get((), 0) for names, c in a.terms.items()})
        name = text_of(value)
        if name not in self.ranges:
            self.ranges[name] = self._range(value, kind, operands, parts)
        return Expression({(name,): 1})

    def _range(self, value: Any, kind: str, operands: list[Any], parts: list[Any]) -> tuple[Any, Any]:
        if kind == "size":
            return value.owner.range_of(*operands) if type(value) is Number else (0, None)
        ends = [self._ends(p) for p in parts]
        low, high = -math.inf, math.inf
        if kind == "%" and ends[1][0] > 0:
            low, high = 0, ends[1][1] - 1
        elif kind == "//" and ends[1][0] > 0 and ends[0][0] >= 0:
            low, high = 0, ends[0][1]
        elif kind == "*" and ends[0][0] >= 0 and ends[1][0] >= 0:
            low = 0
        elif kind in ("sym_max", "sym_min"):
            low, high = (ARITHMETIC[kind](ends[0][i], ends[1][i]) for i in (0, 1))
        elif kind == "item":
            low, high = (-math.inf if v is None else v for v in value.owner.range_of(*operands))
        return (None if math.isinf(low) else int(low)), (None if math.isinf(high) else int(high))

    def add(self, condition: Condition) -> None:
        """Notes a condition that the graph checks."""
        self.texts.add(condition.text())
        difference = self._difference(condition)
        if difference is None:
            return
        self.relations.append((condition.relation, difference))
        names = [k for k in difference.terms if k]
        if len(names) == 1 and abs(difference.terms[names[0]]) == 1:  # c * number + offset <relation> 0
            c, offset, name = difference.terms[names[0]], difference.terms.get((), 0), names[0][0]
            relation = condition.relation if c == 1 else _MIRRORED.get(condition.relation, condition.relation)
            bound = -c * offset
            low, high = self.ranges[name]
            lows = [v for v in (low, {">": bound + 1, ">=": bound, "==": bound}.get(relation)) if v is not None]
            highs = [v for v in (high, {"<": bound - 1, "<=": bound, "==": bound}.get(relation)) if v is not None]
            self.ranges[name] = max(lows, default=None), min(highs, default=None)

    def _difference(self, condition: Condition) -> Expression | None:
        left, right = self.expression(condition.left), self.expression(condition.right)
        return None if left is None or right is None else _sum(left, right, -1)

    def outcome(self, condition: Condition) -> bool | None:
        """The outcome that a condition has for all values; None if it is not known."""
        if condition.text() in self.texts:
            return True
        difference = self._difference(condition)
        if difference is None:
            return None
        low, high = self._bounds(difference)
        holds = {"<": high < 0, "<=": high <= 0, ">": low > 0, ">=": low >= 0, "==": low == high == 0, "!=": low > 0 or high < 0}
        return True if holds[condition.relation] else False if holds[NEGATED[condition.relation]] else None

    def _ends(self, expression: Expression) -> tuple[float, float]:
        """Bounds of a sum by those of its numbers; infinite if there are none."""
        low = high = 0.0
        for names, c in expression.terms.items():
            first, last = self.ranges[names[0]] if names else (1, 1)
            ends = c * (-math.inf if first is None else first), c * (math.inf if last is None else last)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _bounds(self, difference: Expression) -> tuple[float, float]:
        low, high = self._ends(difference)
        for relation, expression in self.relations:
            for sign in (1, -1):  # sign * expression <= most
                given = relation if sign == 1 else _MIRRORED.get(relation, relation)
                most = {"<": -1, "<=": 0, "==": 0}.get(given)
                if most is not None:
                    high = min(high, self._ends(_sum(difference, expression, -sign))[1] + most)
                    low = max(low, self._ends(_sum(difference, expression, sign))[0] - most)
        return low, high

    def is_natural(self, value: Number) -> bool:
        """Whether an int is at least 0 for all values."""
        expression = self.expression(value)
        return expression is not None and self._bounds(expression)[0] >= 0

    def small_size(self, condition: Condition) -> str | None:
        """The size which decides a condition if it is at least 2, if there is one."""
        difference = self._difference(condition)
        names = [k[0] for k in difference.terms if k] if difference is not None else []
        if len(names) != 1 or len(difference.terms) > 2:
            return None
        before = self.ranges[names[0]]
        self.ranges[names[0]] = max(2, before[0] or 0), before[1]
        decides = self.outcome(condition) is not None
        self.ranges[names[0]] = before
        return names[0] if decides else None


def _sum(a: Expression, b: Expression, sign: int) -> Expression:
    """a + sign * b."""
    return Expression({k: a.terms.get(k, 0) + sign * b.terms.get(k, 0) for k in (*a.terms, *b.terms)})
