"""RecordedSize and RecordedFloat: numbers of a recording that depend on sizes.

The sizes of a recorded function's arguments are symbols of SizeFacts (engine/symbolic/facts.h), and a RecordedSize is an expression of
them. Comparisons are decided by what is known of the symbols; others have the outcome of the example, which becomes a guard. Neither
class is an int or float, so that functions in C can read the number only by methods, each of which either computes another number of the
recording or adds a guard.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
import numbers
import operator
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _C
from ..._C import FIRST_EXPRESSION, MOST_EXPRESSIONS, ComputedInt, SizeFacts, set_recorded_types
from ..._symbolic_bool import SymBool


class Guard(NamedTuple):
    """What runs are required to fulfil.

    Attributes:
        text: of the inputs' sizes.
        sign: of a relation.
        number: of the facts' expression that is compared with 0; None for a comparison of floats.
        sides: the compared floats.
        outcome: of the comparison of floats.
    """

    text: str
    sign: str
    number: int | None = None
    sides: tuple = ()
    outcome: bool = True


class Symbol:
    """A size that may differ between calls.

    Attributes:
        name: in the printed graph.
        hint: the size in the example.
        low, high: the range; None is unbounded.
        kind: "named", "DYNAMIC" or "AUTO".
        places: the dimensions that have it: leaf, dimension, factor and offset.
    """

    def __init__(self, name: str, hint: int, low: int, high: int | None, kind: str) -> None:
        self.name, self.hint, self.low, self.high, self.kind = name, hint, low, high, kind
        self.places: list[tuple[int, int, int, int]] = []


class SizeLog:
    """Facts about the sizes of one recording, and its guards in order of creation.

    Args:
        unbacked: the numbers that depend on values of tensors (_unbacked.Values); None if they are not permitted.
        symbols: the sizes that may differ in other runs.
    """

    def __init__(self, unbacked: Any = None, symbols: list[Symbol] | None = None) -> None:
        self.unbacked = unbacked
        self.facts = SizeFacts()
        self.guards: list[Guard] = []
        self.names: list[str] = []  # of the symbols
        self.places: list[str] = []  # how texts of guards name them
        self.defined: dict[int, RecordedSize] = {}  # by symbol: ints that only the graph computes, such as rounded floats
        self.sources: dict[int, list[int]] = {}  # the symbols that those follow from, besides their operands
        self.sizes: dict[int, RecordedSize] = {}  # by number
        self.symbols: dict[str, int] = {}  # numbers by name
        self.numbers: list[int] = []  # of the symbols
        self.unknown: set[int] = set()  # symbols of sizes that the graph reads from its tensors
        self.of_values: set[int] = set()  # symbols of sizes that depend on values
        self.floats: list[RecordedFloat] = []  # that functions in C have received
        self.counts = {"calls": 0, "guards": 0}  # recorded calls, and guards of the facts that were seen
        for s in symbols or []:
            self.symbols[s.name] = self._new(s.name, s.name, s.low, s.high, s.hint)
        self.constant = not symbols

    def without_values(self) -> SizeLog:
        """The same log, for a recording in which no number depends on values."""
        made = copy.copy(self)
        made.unbacked = None
        return made

    def is_active(self) -> bool:
        """Whether a recording of this thread has these sizes: objects that a program keeps outlive it."""
        modes = map(_C._get_dispatch_stack_at, range(_C._len_torch_dispatch_stack()))
        return any(getattr(getattr(mode, "log", None), "facts", None) is self.facts for mode in modes)

    # ---- Numbers

    def own(self, value: Any) -> Any:
        """A number; the example of one that belongs to another recording."""
        is_recorded = type(value) in (RecordedSize, RecordedFloat)
        return value._specialised() if is_recorded and value.log.facts is not self.facts else value

    def number_at(self, symbol: str, factor: int, offset: int) -> int:
        """factor * symbol + offset."""
        return self.facts.compute("+", self.facts.compute("*", self.symbols[symbol], factor), offset)

    def name_place(self, number: int, text: str) -> None:
        """Makes the text that of a symbol in guards, if the number is a symbol without one."""
        index = symbol_of(self.facts, number)
        if index is not None and self.places[index] == self.names[index]:
            self.places[index] = text

    def name_unknown(self, number: int, text: str) -> None:
        """Makes the text that of a symbol which stands for no size of the arguments, in guards."""
        index = symbol_of(self.facts, number)
        if index in self.unknown and self.places[index] == self.names[index]:
            self.places[index] = text

    def define(self, value: int, recipe: tuple, low: int | None = None, high: int | None = None, of: Any = ()) -> RecordedSize:
        """A new symbol for an int that only the graph computes, such as a rounded float. `of`: numbers that it depends on."""
        name = f"d{len(self.names)}"
        made = RecordedSize(self._new(name, name, low, high, value), recipe, self)
        self.defined[len(self.names) - 1] = made
        self.sources[len(self.names) - 1] = [i for number in of for i in symbols_in(self.facts, number)]
        self.places[-1] = text_of(made)
        return made

    def value_symbol(self, value: int) -> int:
        """A symbol for a size that depends on values of tensors, of which Values (_unbacked.py) knows what it may be."""
        self.of_values.add(len(self.names))
        name = f"v{len(self.names)}"
        return self._new(name, name, 0, None, value)

    def _new(self, name: str, place: str, low: int | None, high: int | None, example: int) -> int:
        """The number of a new symbol."""
        self.names.append(name)
        self.places.append(place)
        self.numbers.append(self.facts.symbol(low, high, example))
        return self.numbers[-1]

    def unknown_size(self, value: int) -> int:
        """A new symbol for a size that the graph reads from its tensor."""
        self.unknown.add(len(self.names))
        name = f"d{len(self.names)}"
        return self._new(name, name, 0, None, value)

    def is_at_least_2(self, number: int) -> bool:
        """Whether all symbols of an expression are."""
        return all(self.facts.known(">=", self.numbers[i], 2) is True for i in symbols_in(self.facts, number))

    def size(self, number: int) -> Any:
        """The size or int that a number stands for."""
        if not is_expression(number):
            return number
        return self.sizes[number]

    def restored(self, value: Any) -> Any:
        """An argument of a call with sizes and floats of the recording in place of the numbers that a function in C has passed."""
        if type(value) is int:
            return self.sizes.get(value, value)
        if type(value) is float:
            return value if value == value else self._unboxed(value)
        if type(value) in (list, tuple):
            return type(value)(map(self.restored, value))
        if type(value) is dict:
            return {k: self.restored(v) for k, v in value.items()}
        return slice(*map(self.restored, (value.start, value.stop, value.step))) if type(value) is slice else value

    def boxed(self, value: Any) -> float:
        """A nan that stands for a float while it passes through functions in C."""
        if type(value) is not RecordedFloat:
            return value
        self.floats.append(value)
        return struct.unpack("<d", struct.pack("<Q", _BOX << 32 | len(self.floats) - 1))[0]

    def _unboxed(self, value: float) -> Any:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        is_known = bits >> 32 == _BOX and bits & 0xFFFFFFFF < len(self.floats)
        return self.floats[bits & 0xFFFFFFFF] if is_known else value

    # ---- Guards

    def note_guards(self, text: str | None = None) -> None:
        """Takes over the guards that a comparison, or the rule of an operator, has caused."""
        if self.facts.guard_count() == self.counts["guards"]:
            return
        found = self.facts.guards()[self.counts["guards"] :]
        self.counts["guards"] += len(found)
        for number, sign in found:
            if self.of_values and not self.of_values.isdisjoint(symbols_in(self.facts, number)):
                continue
            own = text if text is not None and len(found) == 1 else relation_text(self.facts, number, sign, self.places)
            self.guards.append(Guard(own, sign, number))

    def text(self, number: int) -> str:
        """An expression of the symbols' names."""
        return expression_text(self.facts, self.facts.simplified(number), self.names)

    def number_of(self, text: str) -> int:
        """The number of an expression of the symbols' names."""
        return self._number(ast.parse(text, mode="eval").body)

    def assume_equal(self, size: Any, value: int) -> None:
        """Takes a number of sizes for equal to an int, which follows from guards."""
        if type(size) is RecordedSize:
            self.facts.assume("==", size.number, value)

    def narrow_defined(self) -> None:
        """Narrows ints that were computed from floats to what follows from the ranges of the symbols now."""
        for i, made in self.defined.items():
            if made.recipe[0] in _WHOLE:
                self.facts.narrow(i, *_bounds_of_whole(*made.recipe))

    def assume(self, text: str) -> None:
        """Takes a comparison of expressions of the symbols' names for true, which is checked elsewhere."""
        tree = ast.parse(text, mode="eval").body
        assert isinstance(tree, ast.Compare)
        self.facts.assume(_SIGNS[type(tree.ops[0])], self._number(tree.left), self._number(tree.comparators[0]))

    def _number(self, node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            return self.symbols[node.id]
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.UnaryOp):
            return self.facts.compute("-", 0, self._number(node.operand))
        if isinstance(node, ast.BinOp):
            return self.facts.compute(_SIGNS[type(node.op)], self._number(node.left), self._number(node.right))
        if not isinstance(node, ast.Call):
            raise ValueError(f"expected an expression of sizes, got {ast.dump(node)}")
        sign = node.func.id.removeprefix("sym_") if isinstance(node.func, ast.Name) else ""
        return functools.reduce(lambda a, b: self.facts.compute(sign, a, b), map(self._number, node.args))

    def known_text(self, number: int) -> str | None:
        """text(); None if it is long, or depends on more than the arguments' sizes."""
        others, number = self.of_values | self.unknown | self.defined.keys(), self.facts.simplified(number)
        is_known = others.isdisjoint(symbols_in(self.facts, number)) and text_length(self.facts, number, {}) < _LONGEST
        return self.text(number) if is_known else None


_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_LONGEST = 4096  # text of an expression: a part of which it has several doubles it
_BOX = 0x7FF87E50  # the upper half of such a nan


def is_expression(number: Any) -> bool:
    """Whether an int stands for an expression of sizes."""
    return type(number) is int and FIRST_EXPRESSION <= number < FIRST_EXPRESSION + MOST_EXPRESSIONS


def symbol_of(facts: SizeFacts, number: int) -> int | None:
    """The symbol that an expression is; None for others."""
    parts = facts.parts(number)
    if len(parts) == 1 and parts[0][0] == 1 and len(parts[0][1]) == 1 and parts[0][1][0][0] == "symbol":
        return parts[0][1][0][1]
    return None


def symbols_in(facts: SizeFacts, number: int) -> list[int]:
    """The symbols of an expression."""
    found: dict[int, None] = {}
    rest, seen = [number], {number}
    while rest:
        for _, factors in facts.parts(rest.pop()):
            for sign, symbol, operands in factors:
                if sign == "symbol":
                    found[symbol] = None
                rest += [o for o in operands if o not in seen]
                seen.update(operands)
    return list(found)


def text_length(facts: SizeFacts, number: int, known: dict[int, int]) -> int:
    """About the length of an expression's text. `known`: lengths of parts."""
    if number not in known:
        factors = [f for _, factors in facts.parts(number) for f in factors]
        known[number] = 4 + sum(8 + sum(text_length(facts, o, known) for o in operands) for _, _, operands in factors)
    return known[number]


def _factor_text(facts: SizeFacts, factor: tuple, names: list[str]) -> str:
    sign, symbol, operands = factor
    if sign == "symbol":
        return names[symbol]
    texts = [expression_text(facts, o, names) for o in operands]
    if sign in ("min", "max"):
        return functools.reduce(lambda a, b: f"sym_{sign}({a}, {b})", texts)
    left, right = (f"({t})" if " " in t or "*" in t or "//" in t else t for t in texts)
    return f"({left}//{right})"


def _term_text(facts: SizeFacts, coefficient: int, factors: list, names: list[str]) -> str:
    texts = [_factor_text(facts, f, names) for f in factors]
    if len(texts) == 1 and coefficient == 1 and factors[0][0] == "//":
        return texts[0][1:-1]
    return "*".join(([str(coefficient)] if coefficient != 1 or not texts else []) + texts)


def _sum_text(facts: SizeFacts, terms: list, names: list[str]) -> str:
    ordered = sorted(terms, key=lambda t: -len(t[1]))
    if len(ordered) > 1 and ordered[0][0] < 0 and any(c > 0 for c, _ in ordered):
        ordered.sort(key=lambda t: t[0] < 0)
    text = ""
    for c, factors in ordered:
        if not text:
            text = ("-" if c < 0 else "") + _term_text(facts, abs(c), factors, names)
        else:
            text += (" - " if c < 0 else " + ") + _term_text(facts, abs(c), factors, names)
    return text or "0"


def expression_text(facts: SizeFacts, number: int, names: list[str]) -> str:
    """An expression as Python code of the symbols' names."""
    return _sum_text(facts, facts.parts(number), names)


def relation_text(facts: SizeFacts, number: int, sign: str, names: list[str]) -> str:
    """`number <sign> 0` as Python code, without negative terms where that is possible."""
    terms = facts.parts(number)
    left = [t for t in terms if t[0] > 0 and t[1]]
    right = [(-c, factors) for c, factors in terms if c < 0 and factors]
    constant = sum(c for c, factors in terms if not factors)
    if sign == "==" and len(left) + len(right) == 1 and constant % (c := [*left, *right][0][0]) == 0:  # one number
        left, right = [(1, [*left, *right][0][1])], []
        constant = constant // c if terms[-1][0] > 0 else -constant // c
    if not left:
        left, right, constant, sign = right, left, -constant, {">=": "<=", "<": ">"}.get(sign, sign)
    if constant > 0 and right:
        left = [*left, (constant, [])]
    elif constant or not right:
        right = [*right, (-constant, [])]
    return f"{_sum_text(facts, left, names)} {sign} {_sum_text(facts, right, names)}"


class RecordedSize:
    """An int that is an expression of sizes, with its origin: ("size", node, dim), or an operation and its operands.

    It is no int: C code receives the number by its methods only. isinstance() accepts it as an int, as it does the number of another call,
    and as a SymInt.

    A comparison is a SymBool, whose outcome is a guard when Python needs it, unless it is known. A conversion to a plain number is a guard
    that the size has this value.
    """

    __slots__ = ("log", "number", "recipe")

    __array_priority__ = 0  # a number of numpy leaves operations to this class, an array does not

    def __new__(cls, value: Any = 0, *origin: Any) -> Any:
        """A size; an int of Python for type(n)(value), as libraries call it."""
        return object.__new__(cls) if origin else int(value)

    def __init__(self, number: int, recipe: tuple, log: SizeLog) -> None:
        self.number, self.recipe, self.log = number, recipe, log
        log.sizes.setdefault(number, self)

    @property
    def _value(self) -> int:
        """The number, which functions in C pass on; after the recording, the example."""
        return self.number if self.log.is_active() else self._specialised()

    @property
    def _float_argument(self) -> float:
        """A float that stands for the size, for a parameter that is a float; after the recording, the example."""
        return self.log.boxed(self.as_float()) if self.log.is_active() else float(self._specialised())

    @staticmethod
    def of(number: int, recipe: tuple, log: SizeLog) -> Any:
        """A size with an origin; an int if the number is the same in all runs."""
        return RecordedSize(number, recipe, log) if is_expression(number) else number

    @property
    def __class__(self) -> type:  # for isinstance()
        return ComputedInt

    def plain(self) -> int:
        """The value in the example, without a guard."""
        return self.log.facts.example(self.number)

    def is_defined(self) -> bool:
        """Whether it is a symbol that stands for no size of the arguments."""
        return symbol_of(self.log.facts, self.number) in self.log.defined

    def compared(self, relation: str, other: Any) -> bool:
        """The outcome of a comparison with an int, as a guard unless it is known."""
        other = self.log.own(other)
        facts, right = self.log.facts, _number_of(other)
        if (known := facts.known(relation, self.number, right)) is not None:
            return known
        outcome = facts.decide(relation, self.number, right)
        text = f"{text_of(self)} {relation} {text_of(other)}"
        self.log.note_guards(text if outcome else f"not ({text})")
        return outcome

    def as_float(self) -> Any:
        """torch.sym_float(self)."""
        return RecordedFloat.of(self.log, "sym_float", self)

    def __sym_sqrt__(self) -> Any:
        return RecordedFloat.of(self.log, "sym_sqrt", self.as_float())

    def chosen(self, condition: SymBool, t: Any, f: Any) -> RecordedSize | int:
        """torch.sym_ite(condition, t, f) in the recording of this size."""
        return _chosen(self.log, condition, t, f)

    def __sym_max__(self, other: Any) -> Any:
        return _computed_size(self.log, "sym_max", self, other)

    def __sym_min__(self, other: Any) -> Any:
        return _computed_size(self.log, "sym_min", self, other)

    def __abs__(self) -> Any:
        return self.__sym_max__(-self)

    def _specialised(self) -> int:
        value = self.log.facts.specialise(self.number)
        self.log.note_guards()
        return value

    def __int__(self) -> int:
        return self._specialised()

    def __index__(self) -> int:
        return self._specialised()

    def __float__(self) -> float:
        return float(self._specialised())

    def __hash__(self) -> int:  # a set or dict compares no others than those with an equal hash
        return hash(self._specialised())

    def __complex__(self) -> complex:
        return complex(self._specialised())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _array(self._specialised(), dtype, copy)

    from_bytes = staticmethod(int.from_bytes)

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if _is_unbacked(other) else (self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if _is_unbacked(other) else (other // self, other % self)

    def __pos__(self) -> RecordedSize:
        return self

    __ceil__ = __floor__ = __trunc__ = __pos__

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self._specialised(), digits)

    def __bool__(self) -> bool:
        return self.compared("!=", 0)

    def __repr__(self) -> str:
        return str(self._specialised())

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self._specialised(), spec)

    @property
    def real(self) -> RecordedSize:
        """The size."""
        return self

    numerator = real

    @property
    def imag(self) -> int:
        """0."""
        return 0

    @property
    def denominator(self) -> int:
        """1."""
        return 1

    def conjugate(self) -> RecordedSize:
        """The size."""
        return self

    def is_integer(self) -> bool:
        """True."""
        return True

    def __reduce__(self) -> tuple:
        return int, (self._specialised(),)

    def __copy__(self) -> RecordedSize:
        return self

    def __deepcopy__(self, memo: dict) -> RecordedSize:
        return self

    def __truediv__(self, other: Any) -> Any:
        return _float_result(self.log, "/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _float_result(self.log, "/", other, self)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is None and type(other) is int and 0 <= other <= 8 and self.log.unbacked is None:
            return _computed_size(self.log, "**", self, other)
        if modulo is None and (type(other) is float or type(other) is int and other < 0):
            return _float_result(self.log, "**", self, float(other))
        if type(other) is RecordedFloat and modulo is None:
            return _float_result(self.log, "**", self, other)
        return pow(self._specialised(), other, modulo) if _is_number(other) else NotImplemented

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        if type(other) is float and other > 0 and modulo is None:
            return _float_result(self.log, "**", other, self)
        return pow(other, self._specialised(), modulo) if _is_number(other) else NotImplemented


class RecordedFloat:
    """A float that was computed from sizes: an operation and its operands.

    Functions in C pass a float on that stands for it, and the node of the call receives the RecordedFloat. It is no float, so that they
    cannot read the value without a guard that it is the same in all runs.
    """

    __array_priority__ = 0  # a number of numpy leaves operations to this class, an array does not

    def __new__(cls, value: Any = 0.0, *origin: Any) -> Any:
        """A float of sizes; a float of Python for type(f)(value), as libraries call it."""
        return object.__new__(cls) if origin else float(value)

    def __init__(self, value: float, recipe: tuple, log: SizeLog) -> None:
        self._value, self.recipe, self.log = value, recipe, log

    @staticmethod
    def of(log: SizeLog, kind: str, *operands: Any) -> Any:
        """The result of an operation; a plain float, which all runs are required to have, together with numbers of values of tensors."""
        if log.unbacked is not None:
            return FLOAT_OPERATIONS[kind](*map(_plain, operands))
        found = _computed(FLOAT_OPERATIONS[kind], *operands)
        if type(found) is not float:  # a root of a negative number
            return FLOAT_OPERATIONS[kind](*map(_plain, operands))
        _require_divisor(kind, operands)
        return RecordedFloat(found, (kind, *operands), log)

    @property
    def __class__(self) -> type:  # for isinstance(); functions in C see that it is no float
        return float

    @property
    def _float_argument(self) -> float:
        """A float that stands for this one, which functions in C pass on; after the recording, the value in the example."""
        return self.log.boxed(self) if self.log.is_active() else self._specialised()

    def plain(self) -> float:
        """The value, without a guard."""
        return self._value

    def as_float(self) -> RecordedFloat:
        """torch.sym_float(self)."""
        return self

    def compared(self, relation: str, other: Any) -> bool:
        """The outcome of a comparison with a number, as a guard."""
        return _required(self.log, relation, self, other)

    def chosen(self, condition: SymBool, t: Any, f: Any) -> Any:
        """torch.sym_ite(condition, t, f) in the recording of this float."""
        return _chosen(self.log, condition, t, f)

    def _specialised(self) -> float:
        _required(self.log, "==", self, self._value)
        return self._value

    def _whole(self, kind: str) -> RecordedSize:
        return self.log.define(_WHOLE[kind](self._value), (kind, self), *_bounds_of_whole(kind, self))

    def __round__(self, *digits: Any) -> Any:
        return round(self._specialised(), *digits) if digits and digits[0] is not None else self._whole("round")

    def __ceil__(self) -> RecordedSize:
        return self._whole("ceil")

    def __floor__(self) -> RecordedSize:
        return self._whole("floor")

    def __trunc__(self) -> RecordedSize:
        return self._whole("trunc")

    def __sym_sqrt__(self) -> Any:
        return RecordedFloat.of(self.log, "sym_sqrt", self)

    def __float__(self) -> float:
        return self._specialised()

    def __int__(self) -> int:
        return int(self.__trunc__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _array(self._specialised(), dtype, copy)

    def __bool__(self) -> bool:
        return self.compared("!=", 0.0)

    def __neg__(self) -> Any:
        return RecordedFloat.of(self.log, "neg", self)

    def __pos__(self) -> RecordedFloat:
        return self

    def __abs__(self) -> Any:
        return RecordedFloat.of(self.log, "abs", self)

    def __hash__(self) -> int:
        return hash(self._specialised())

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __repr__(self) -> str:
        return repr(self._specialised())

    def __format__(self, spec: str) -> str:
        return format(self._specialised(), spec)

    def __reduce__(self) -> tuple:
        return float, (self._specialised(),)

    def __copy__(self) -> RecordedFloat:
        return self

    def __deepcopy__(self, memo: dict) -> RecordedFloat:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"'float' object has no attribute '{name}'")
        return getattr(self._specialised(), name)



FLOAT_OPERATIONS: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "neg": operator.neg, "abs": abs, "sym_float": float, "sym_sqrt": math.sqrt,
}  # fmt: skip


def _float_result(log: SizeLog, kind: str, a: Any, b: Any) -> Any:
    """The float that an operation of numbers gives, one of which is a RecordedSize or RecordedFloat."""
    if _is_unbacked(a) or _is_unbacked(b):
        return NotImplemented
    operands = [log.own(_as_python(v)) for v in (a, b)]
    if any(type(v) not in (int, float, RecordedSize, RecordedFloat) for v in operands):  # a complex number, for example
        return FLOAT_OPERATIONS[kind](*map(_plain, operands)) if all(map(_is_number, operands)) else NotImplemented
    if not (kind == "/" and all(type(v) in (int, RecordedSize) for v in operands)):
        operands = [v.as_float() if type(v) is RecordedSize else float(v) if type(v) is int else v for v in operands]
    return RecordedFloat.of(log, kind, *operands)


def _as_python(value: Any) -> Any:
    """An int or float of numpy, or a bool, as one of Python; any other value itself."""
    if type(value) in (RecordedSize, RecordedFloat) or not isinstance(value, (float, numbers.Integral)):
        return value
    return float(value) if isinstance(value, float) else int(value)


def _array(value: float, dtype: Any, copy: bool | None) -> Any:
    import numpy  # not loaded with the package

    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return numpy.array(value, dtype)


def _require_divisor(kind: str, operands: Any) -> None:
    """Makes a guard that a divisor is not 0, for which the function raises an error."""
    if kind == "**" and type(value_of(operands[1])) is float and not value_of(operands[1]) >= 0:
        divisor = operands[0]
    elif kind in ("/", "//", "%"):
        divisor = operands[1]
    else:
        return
    if type(divisor) in (RecordedSize, RecordedFloat):
        divisor.compared("!=", 0)


def _float_arithmetic(kind: str, is_reflected: bool) -> Callable:
    return lambda self, other: _float_result(self.log, kind, *((other, self) if is_reflected else (self, other)))


for _kind, _name in (
    ("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("//", "floordiv"), ("%", "mod"), ("**", "pow"),
):  # fmt: skip
    setattr(RecordedFloat, f"__{_name}__", _float_arithmetic(_kind, False))
    setattr(RecordedFloat, f"__r{_name}__", _float_arithmetic(_kind, True))


def _float_comparison(relation: str) -> Callable:
    def compare(self: RecordedFloat, other: Any) -> Any:
        if _is_unbacked(other) or type(other) not in (bool, int, float, RecordedSize, RecordedFloat):
            return NotImplemented
        number = other.as_float() if type(other) is RecordedSize else float(other) if type(other) is bool else other
        return SymBool.of(relation, self, number)

    return compare


def _required(log: SizeLog, relation: str, left: Any, right: Any) -> bool:
    """The outcome of a comparison of numbers of which one is a float, as a guard unless it is known."""
    left, right = log.own(left), log.own(right)
    ints = [_as_int(v) for v in (left, right)]
    if None not in ints and type(ints[0]) is RecordedSize:
        return ints[0].compared(relation, ints[1])
    if right == 0 and type(left) is RecordedFloat and left.recipe[0] in ("*", "/"):  # by a positive number: has the same sign
        number, by = left.recipe[1:]
        if type(number) in (RecordedSize, RecordedFloat) and type(by) in (int, float) and 2.0**-60 < by < 2.0**60:
            return number.compared(relation, 0)
    outcome = _RELATIONS[relation](value_of(left), value_of(right))
    if not holds_between(relation, outcome, bounds_of(left), bounds_of(right)):
        text = f"{text_of(left)} {relation} {text_of(right)}"
        log.guards.append(Guard(text if outcome else f"not ({text})", relation, None, (left, right), outcome))
    return outcome


def _as_int(value: Any) -> Any:
    """The int that a float is for all sizes that tensors have in practice; None for other floats."""
    if type(value) is RecordedFloat:
        return value.recipe[1] if value.recipe[0] == "sym_float" and type(value.recipe[1]) is RecordedSize else None
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 2.0**53 else None
    return value


def _number_of(value: Any) -> int:
    return value.number if type(value) is RecordedSize else int(value)


def _computed_size(log: SizeLog, kind: str, a: Any, b: Any) -> Any:
    """The result of an operation of ints. If it fails in the example, all runs are required to have these numbers."""
    a, b = log.own(a), log.own(b)
    _computed(ARITHMETIC[kind], a, b)
    facts, x, y = log.facts, _number_of(a), _number_of(b)
    try:
        if kind == "**":
            number = 1
            for _ in range(y):
                number = facts.compute("*", number, x)
        else:
            number = facts.compute(kind.removeprefix("sym_"), x, y)
    except OverflowError:  # beyond 64 bits for some sizes
        return ARITHMETIC[kind](*map(_plain, (a, b)))
    log.note_guards(f"{text_of(b)} != 0")
    return RecordedSize.of(number, (kind, a, b), log)


def _chosen(log: SizeLog, condition: SymBool, t: Any, f: Any) -> Any:
    compared = [v for c in condition.comparisons() for v in c.operands]
    if not all(type(v) in (int, RecordedSize) for v in (t, f, *compared)):
        return t if condition else f
    ends = [(v, v) if type(v) is int else log.facts.bounds(v.number) for v in (t, f)]
    low, high = (None if None in side else choose(side) for choose, side in zip((min, max), zip(*ends)))
    return log.define(value_of(t if condition._value else f), ("sym_ite", condition, t, f), low, high)


ORIGINS = frozenset({"size", "input", "stride", "offset"})  # kinds of sizes that are computed from no others


def _is_number(value: Any) -> bool:
    """Whether Python computes with a value and an int: also a complex number, a Fraction, and one of numpy."""
    return type(value) in (int, float, RecordedSize, RecordedFloat) or isinstance(value, numbers.Number)


def _computed(function: Callable, *operands: Any) -> Any:
    """The result of an operation of numbers. If it fails, all runs are required to have these numbers."""
    try:
        return function(*map(value_of, operands))
    except (ArithmeticError, ValueError):
        _ = list(map(_plain, operands))
        raise


def _is_unbacked(value: Any) -> bool:
    """Whether a number depends on values of tensors (_numbers.py). It computes with sizes itself."""
    return getattr(type(value), "is_unbacked", False)


def _plain(value: Any) -> Any:
    return value._specialised() if type(value) in (RecordedSize, RecordedFloat) else value


def require_arguments(log: SizeLog, arguments: Any) -> None:
    """Makes guards of the sizes and ints among the arguments of a call that fails: the program may catch its error, and a call with
    others may not fail."""
    for value in arguments.values() if isinstance(arguments, dict) else arguments:
        if isinstance(value, (list, tuple, dict)):
            require_arguments(log, value)
        elif isinstance(value, slice):
            require_arguments(log, (value.start, value.stop, value.step))
        elif hasattr(type(value), "require_sizes"):
            value.require_sizes()
        elif type(value) in (RecordedSize, RecordedFloat):
            _plain(value)
        elif type(value) is SymBool:
            bool(value)
        elif is_expression(value):
            _plain(log.size(value))


def value_of(value: Any) -> Any:
    """The number or bool, without a guard."""
    return value.plain() if isinstance(value, RecordedSize) else value._value if type(value) in (SymBool, RecordedFloat) else value


def text_of(value: Any) -> str:
    """How the value was computed, as text."""
    if type(value) is SymBool:
        parts = [text_of(o) if value.sign in _RELATIONS or type(o) is not SymBool else f"({text_of(o)})" for o in value.operands]
        sign = {"and": "&", "or": "|", "eq": "==", "xor": "!="}.get(value.sign, value.sign)
        return f"not {parts[0]}" if sign == "not" else f" {sign} ".join(parts)
    if type(value) not in (RecordedSize, RecordedFloat):
        return str(value)
    kind, *operands = value.recipe
    if kind in _CALLED:
        return f"{kind}({', '.join(map(text_of, operands))})"
    if kind in ORIGINS and value.log.unbacked is None and operands[0].op != "placeholder" and not value.is_defined():
        return expression_text(value.log.facts, value.number, value.log.places)
    if kind == "size":
        return f"{operands[0]}.size()[{operands[1]}]"
    if kind == "stride":
        return f"{operands[0]}.stride()[{operands[1]}]"
    if kind == "offset":
        return f"{operands[0]}.storage_offset()"
    if kind == "input":
        return str(operands[0])
    if kind == "neg":
        return f"-({text_of(operands[0])})"
    left, right = map(_operand_text, operands)
    return f"{left} {kind} {right}"


def _operand_text(value: Any) -> str:
    text = text_of(value)
    is_call = type(value) in (RecordedSize, RecordedFloat) and value.recipe[0] in _CALLED
    return f"({text})" if " " in text and not is_call else text


_RELATIONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CALLED = frozenset("sym_ite sym_max sym_min abs ceil floor round sym_float sym_sqrt trunc".split())  # kinds that are written as calls
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "sym_max": max, "sym_min": min,
}  # fmt: skip


def _compared(relation: str, left: RecordedSize, right: Any) -> Any:
    if _is_unbacked(right):
        return NotImplemented
    if type(right) is RecordedFloat:
        return SymBool.of(relation, left.as_float(), right)
    if type(right) in (int, RecordedSize) or type(right) is float and left.log.unbacked is None:
        return SymBool.of(relation, left, right)
    if isinstance(right, (numbers.Integral, float)) and type(right) is not float:  # a bool, or one of numpy
        return _compared(relation, left, float(right) if isinstance(right, float) else int(right))
    return _RELATIONS[relation](left._specialised(), right) if _is_number(right) else NotImplemented


def _arithmetic(symbol: str, reflected: bool) -> Callable:
    function = ARITHMETIC[symbol]

    def compute(self: RecordedSize, other: Any) -> Any:
        if type(other) not in (int, RecordedSize):
            if type(other) in (float, RecordedFloat):
                return _float_result(self.log, symbol, *((other, self) if reflected else (self, other)))
            if _is_unbacked(other) or not _is_number(other):
                return NotImplemented
            if isinstance(other, float):  # one of numpy
                return compute(self, float(other))
            if not isinstance(other, numbers.Integral):  # a Fraction, for example
                value = self._specialised()
                return function(other, value) if reflected else function(value, other)
            other = int(other)
        a, b = (other, self) if reflected else (self, other)
        return _computed_size(self.log, symbol, a, b)

    return compute


for _symbol, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod")):
    setattr(RecordedSize, f"__{_name}__", _arithmetic(_symbol, False))
    setattr(RecordedSize, f"__r{_name}__", _arithmetic(_symbol, True))
for _symbol, _function in _RELATIONS.items():
    setattr(RecordedSize, f"__{_function.__name__}__", lambda self, other, relation=_symbol: _compared(relation, self, other))
    setattr(RecordedFloat, f"__{_function.__name__}__", _float_comparison(_symbol))


set_recorded_types(RecordedSize, RecordedFloat)


def _of_number(name: str) -> Callable:
    method = getattr(int, name)
    return lambda self, *args: method(self._specialised(), *map(_plain, args))


for _name in (
    "__or__", "__rlshift__", "__ror__", "__rrshift__", "__rxor__", "__xor__", "as_integer_ratio", "bit_count", "bit_length", "to_bytes",
):
    setattr(RecordedSize, _name, _of_number(_name))


def _of_bits(name: str, computed: Callable) -> Callable:
    """A method of ints for bits, which is a quotient, a product or a remainder for some of its arguments."""
    of_number = _of_number(name)

    def compute(self: RecordedSize, other: Any) -> Any:
        found = computed(self, other) if type(other) is int else None
        return of_number(self, other) if found is None else found

    return compute


def _masked(size: RecordedSize, mask: int) -> RecordedSize | int | None:
    if mask <= 0:  # rounds down to a multiple
        return 0 if mask == 0 else size - size % -mask if -mask & (-mask - 1) == 0 else None
    return size % (mask + 1) if mask & (mask + 1) == 0 else None


RecordedSize.__and__, RecordedSize.__rand__ = _of_bits("__and__", _masked), _of_bits("__rand__", _masked)
RecordedSize.__lshift__ = _of_bits("__lshift__", lambda size, count: size * (1 << count) if 0 <= count < 63 else None)
RecordedSize.__rshift__ = _of_bits("__rshift__", lambda size, count: size // (1 << count) if 0 <= count < 63 else None)
RecordedSize.__invert__ = lambda self: -self - 1
RecordedSize.__neg__ = lambda self: RecordedSize.of(self.log.facts.compute("-", 0, self.number), ("neg", self), self.log)


# ---- Ranges of floats

Interval = tuple[float, float]
_EVERYTHING: Interval = (-math.inf, math.inf)


def bounds_of(value: Any) -> Interval:
    """Bounds of a number for all sizes, by interval arithmetic on its operations."""
    if type(value) is RecordedSize:
        low, high = value.log.facts.bounds(value.number)
        return -(2.0**63) if low is None else low, 2.0**63 if high is None else high
    if type(value) is not RecordedFloat:
        return (value, value) if value == value else _EVERYTHING
    operands = [bounds_of(v) for v in value.recipe[1:]]
    if all(low == high for low, high in operands):  # the same in all runs
        return value._value, value._value
    low, high = _interval(value.recipe[0], *operands)
    below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return max(below, 0.0) if low >= 0 else below, min(above, 0.0) if high <= 0 else above  # rounding keeps the sign


_WHOLE: dict[str, Callable] = {"round": round, "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc}


def _bounds_of_whole(kind: str, value: Any) -> list[int | None]:
    return [_WHOLE[kind](v) if abs(v) < 2.0**62 else None for v in bounds_of(value)]


def _interval(kind: str, a: Interval, b: Interval = (0.0, 0.0)) -> Interval:
    if kind in ("neg", "-"):
        a, b = ((0.0, 0.0), a) if kind == "neg" else (a, b)
        return a[0] - b[1], a[1] - b[0]
    if kind == "sym_float":
        return a
    if kind == "+":
        return a[0] + b[0], a[1] + b[1]
    if kind == "abs":
        return (0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))), max(abs(a[0]), abs(a[1]))
    if kind == "sym_sqrt" and a[0] >= 0:
        return math.sqrt(a[0]) * (1 - 1e-15), math.sqrt(a[1]) * (1 + 1e-15)
    is_power = kind == "**" and b[0] == b[1] and a[0] > 0
    if kind == "/" and (b[0] > 0 or b[1] < 0) or kind == "*" or is_power:
        try:
            ends = [FLOAT_OPERATIONS[kind](float(x), float(y)) for x in a for y in b]
        except (ArithmeticError, ValueError):  # too large, for example
            return _EVERYTHING
        ends = [e * (1 + d) for e in ends for d in (-1e-15, 1e-15)] if is_power else ends
        return _EVERYTHING if any(e != e for e in ends) else (min(ends), max(ends))
    return _EVERYTHING


def holds_between(relation: str, outcome: bool, left: Interval, right: Interval) -> bool:
    """Whether a comparison has the outcome for all numbers within the bounds of its sides."""
    (a, b), (c, d) = left, right
    always = {"<": b < c, "<=": b <= c, ">": a > d, ">=": a >= d, "==": a == b == c == d, "!=": b < c or a > d}
    never = {"<": a >= d, "<=": a > d, ">": b <= c, ">=": b < c, "==": always["!="], "!=": always["=="]}
    return (always if outcome else never)[relation]
