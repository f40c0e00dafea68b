"""RecordedSize: a size of a recorded tensor, which remembers how it was computed and what the program asked about it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._C import SymInt
from ..._symbolic_bool import SymBool


class Guard(NamedTuple):
    """A question about sizes that Python code has asked: `left <relation> right` was `outcome`.

    The relation "constant" says that Python code has used the number `left`.
    """

    relation: str
    left: int
    right: int
    outcome: bool
    text: str


class SizeLog:
    """The sizes that one recording has computed, the guards, and the bools of choices (CHOICES), in the order of their creation.

    Args:
        unbacked: the numbers that depend on values of tensors (_unbacked.Values); None if they are not permitted.
    """

    def __init__(self, unbacked: Any = None) -> None:
        self.expressions: list[RecordedSize] = []
        self.guards: list[Guard] = []
        self.choices: list[SymBool] = []
        self.unbacked = unbacked


class RecordedSize(int):
    """An int with its origin: ("size", node, dim), or an operator and its operands.

    A comparison is a SymBool, whose outcome is recorded as a guard when Python needs it. A conversion to a plain number is a guard that
    the size has this value.
    """

    recipe: tuple
    log: SizeLog

    @staticmethod
    def of(value: int, recipe: tuple, log: SizeLog) -> RecordedSize:
        """A size with a value and an origin."""
        made = int.__new__(RecordedSize, value)
        made.recipe, made.log = recipe, log
        log.expressions.append(made)
        return made

    @property
    def __class__(self) -> type:  # for isinstance(); it is an int, too
        return SymInt

    def plain(self) -> int:
        """The value, without a guard."""
        return int.__add__(self, 0)

    def compared(self, relation: str, other: int) -> bool:
        """The outcome of a comparison with an int, as a guard."""
        outcome = _RELATIONS[relation](value_of(self), value_of(other))
        self.log.guards.append(guard_of(relation, self, other, outcome))
        return outcome

    def chosen(self, condition: SymBool, t: Any, f: Any) -> RecordedSize | int:
        """torch.sym_ite(condition, t, f) in the recording of this size."""
        if not all(type(v) in (int, RecordedSize) for v in (t, f)):
            return t if condition else f
        self.log.choices.append(condition)
        return RecordedSize.of(value_of(t if condition.value else f), ("sym_ite", condition, t, f), self.log)

    def _extremum(self, kind: str, function: Callable, other: Any) -> RecordedSize:
        self.log.choices.append(SymBool.of(">=", self, other))
        return RecordedSize.of(function(value_of(self), value_of(other)), (kind, self, other), self.log)

    def __sym_max__(self, other: Any) -> RecordedSize:
        return self._extremum("sym_max", max, other)

    def __sym_min__(self, other: Any) -> RecordedSize:
        return self._extremum("sym_min", min, other)

    def __abs__(self) -> RecordedSize:
        return self.__sym_max__(-self)

    def _specialised(self) -> int:
        value = self.plain()
        self.log.guards.append(Guard("constant", value, 0, True, f"{text_of(self)} == {value}"))
        return value

    def __int__(self) -> int:
        return self._specialised()

    def __index__(self) -> int:
        return self._specialised()

    def __float__(self) -> float:
        return float(self._specialised())

    def __hash__(self) -> int:  # a set or dict compares no others than those with an equal hash
        return hash(self._specialised())

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if _is_unbacked(other) else (self // other, self % other)

    def __bool__(self) -> bool:
        return self.compared("!=", 0)

    def __repr__(self) -> str:
        return str(self.plain())

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.plain(), spec)

    def __reduce__(self) -> tuple:
        return int, (self.plain(),)

    def __copy__(self) -> RecordedSize:
        return self

    def __deepcopy__(self, memo: dict) -> RecordedSize:
        return self

    def __truediv__(self, other: Any) -> float:
        if _is_unbacked(other):
            return NotImplemented
        return self._specialised() / _plain(other)

    def __rtruediv__(self, other: Any) -> float:
        return other / self._specialised()

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        return pow(self._specialised(), other, modulo)

    def __rpow__(self, other: Any) -> Any:
        return other ** self._specialised()


CHOICES = frozenset({"sym_ite", "sym_max", "sym_min"})  # kinds of sizes that are one of their operands


def _is_unbacked(value: Any) -> bool:
    """Whether a number depends on values of tensors (_numbers.py). It computes with sizes itself."""
    return getattr(type(value), "is_unbacked", False)


def _plain(value: Any) -> Any:
    return value._specialised() if isinstance(value, RecordedSize) else value


def value_of(value: Any) -> Any:
    """The number or bool, without a guard."""
    return value.plain() if isinstance(value, RecordedSize) else value.value if type(value) is SymBool else value


def guard_of(relation: str, left: Any, right: Any, outcome: bool) -> Guard:
    """The guard that a comparison has an outcome."""
    text = f"{text_of(left)} {relation} {text_of(right)}"
    return Guard(relation, value_of(left), value_of(right), outcome, text if outcome else f"not ({text})")


def guards_of(condition: SymBool) -> list[Guard]:
    """Guards that all comparisons of a bool have their outcomes."""
    return [guard_of(c.sign, *c.operands, c.value) for c in condition.comparisons()]


def operands_of(size: RecordedSize) -> list[Any]:
    """The numbers that a size was computed from; none of one that a tensor has, or that is an argument."""
    kind, *operands = size.recipe
    if kind == "sym_ite":
        return [*operands[1:], *(o for c in operands[0].comparisons() for o in c.operands)]
    return [] if kind in ("size", "input") else operands


def text_of(value: Any) -> str:
    """How the value was computed, as text."""
    if type(value) is SymBool:
        parts = [text_of(o) if value.sign in _RELATIONS or type(o) is not SymBool else f"({text_of(o)})" for o in value.operands]
        sign = {"and": "&", "or": "|", "eq": "==", "xor": "!="}.get(value.sign, value.sign)
        return f"not {parts[0]}" if sign == "not" else f" {sign} ".join(parts)
    if not isinstance(value, RecordedSize):
        return str(value)
    kind, *operands = value.recipe
    if kind in CHOICES:
        return f"{kind}({', '.join(map(text_of, operands))})"
    if kind == "size":
        return f"{operands[0]}.size()[{operands[1]}]"
    if kind == "input":
        return str(operands[0])
    if kind == "neg":
        return f"-({text_of(operands[0])})"
    compound = [isinstance(o, RecordedSize) and o.recipe[0] not in ("size", "input") for o in operands]
    left, right = (f"({text_of(o)})" if c else text_of(o) for o, c in zip(operands, compound))
    return f"{left} {kind} {right}"


_RELATIONS = {"==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def _compared(relation: str, left: RecordedSize, right: Any) -> Any:
    if _is_unbacked(right):
        return NotImplemented
    if not isinstance(right, int):
        if isinstance(right, float):
            return getattr(float, _RELATIONS[relation].__name__)(left.__float__(), right)
        return NotImplemented
    return SymBool.of(relation, left, right)


def _arithmetic(symbol: str, reflected: bool) -> Callable:
    function = ARITHMETIC[symbol]

    def compute(self: RecordedSize, other: Any) -> Any:
        if _is_unbacked(other):
            return NotImplemented
        if isinstance(other, bool) or not isinstance(other, int):
            if isinstance(other, float):
                number = self.__float__()
                return function(other, number) if reflected else function(number, other)
            return NotImplemented
        a, b = (other, self) if reflected else (self, other)
        return RecordedSize.of(function(value_of(a), value_of(b)), (symbol, a, b), self.log)

    return compute


for _symbol, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod")):
    setattr(RecordedSize, f"__{_name}__", _arithmetic(_symbol, False))
    setattr(RecordedSize, f"__r{_name}__", _arithmetic(_symbol, True))
for _symbol, _function in _RELATIONS.items():
    setattr(RecordedSize, _function.__name__, lambda self, other, relation=_symbol: _compared(relation, self, other))
def _of_number(name: str) -> Callable:
    method = getattr(int, name)
    return lambda self, *args: method(self._specialised(), *map(_plain, args))


for _name in (
    "__and__", "__ceil__", "__floor__", "__invert__", "__lshift__", "__or__", "__pos__", "__rand__", "__rdivmod__",
    "__rlshift__", "__ror__", "__round__", "__rrshift__", "__rshift__", "__rxor__", "__trunc__", "__xor__", "as_integer_ratio",
    "bit_count", "bit_length", "to_bytes",
):  # fmt: skip
    setattr(RecordedSize, _name, _of_number(_name))
RecordedSize.__neg__ = lambda self: RecordedSize.of(-self.plain(), ("neg", self), self.log)
