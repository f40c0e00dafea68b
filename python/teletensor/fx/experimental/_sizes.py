"""RecordedSize and RecordedFloat: numbers of a recording that depend on sizes.

They remember how they were computed, and what the program asked about them. Neither is an int or float, so that functions in C can read
the number only by methods, each of which either computes another number of the recording or adds a guard.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..._C import ComputedInt, OverridableFunction, set_recorded_size_type
from ..._symbolic_bool import SymBool


class Guard(NamedTuple):
    """A question about sizes that Python code has asked: `left <relation> right` was `outcome`.

    The relation "constant" says that Python code has used the number `left`.
    """

    relation: str
    left: Any
    right: Any
    outcome: bool
    text: str
    operands: tuple = ()  # the numbers that were compared; one of the tensor for is_contiguous()

    def compares_floats(self) -> bool:
        """Whether one of the numbers is a float."""
        return any(type(value_of(v)) is float for v in self.operands)


class SizeLog:
    """The sizes that one recording has computed, the guards, and the bools of choices (CHOICES), in the order of their creation.

    Args:
        unbacked: the numbers that depend on values of tensors (_unbacked.Values); None if they are not permitted.
        constant: whether the sizes of the arguments are constants.
    """

    def __init__(self, unbacked: Any = None, constant: bool = False) -> None:
        self.constant = constant or unbacked is not None and unbacked.static
        self.expressions: list[RecordedSize] = []
        self.guards: list[Guard] = []
        self.calls_before: list[int] = []  # the number of calls before each guard that Python code caused
        self.choices: list[SymBool] = []
        self.divisions: list[tuple[Any, Any]] = []  # numbers and the numbers of sizes by which they are divided
        self.unbacked = unbacked
        self.calls: list[Any] = []  # the nodes that were recorded as calls
        self.passed: list[dict[tuple[type, Any], Any]] = []  # per call of a function in C: numbers among its arguments, by value
        self.reads: dict[int, RecordedSize] = {}  # sizes that a function in C has read since the last call was recorded, by id
        self.unmatched: list[RecordedSize] = []  # sizes that were read, of which no argument of a call is known to be one

    def add_guard(self, guard: Guard) -> None:
        """Adds a guard that the running code causes."""
        self.guards.append(guard)
        self.calls_before.append(len(self.calls))

    def forget_within(self, nodes: Any, guards: int, choices: int) -> bool:
        """Removes guards and choices from these numbers on that are of sizes of these nodes, which no guard can name.

        Returns whether there are any.
        """

        def is_within(values: Any) -> bool:
            return any(n.recipe[1] in nodes for v in values for n in origins(v))

        found = [i for i in range(guards, len(self.guards)) if is_within(self.guards[i].operands)]
        for i in reversed(found):
            del self.guards[i], self.calls_before[i]
        kept = [c for c in self.choices[choices:] if not is_within(o for r in c.comparisons() for o in r.operands)]
        is_changed = bool(found) or len(kept) < len(self.choices) - choices
        self.choices[choices:] = kept
        return is_changed

    def take_reads(self) -> list[RecordedSize]:
        """The sizes that a function in C has read for a call, which is about to be recorded."""
        found = list(self.reads.values())
        self.reads.clear()
        return found


class RecordedSize:
    """An int with its origin: ("size", node, dim), or an operator and its operands.

    It is no int: C code receives the number by its methods only. isinstance() accepts it as an int, as it does the number of another call,
    and as a SymInt.

    A comparison is a SymBool, whose outcome is recorded as a guard when Python needs it. A conversion to a plain number is a guard that
    the size has this value. Calls of operators read `_value` without a guard: the recording finds the expressions of their arguments.
    """

    __slots__ = ("_number", "log", "recipe")

    __array_priority__ = 0  # a number of numpy leaves operations to this class, an array does not

    def __new__(cls, value: Any = 0, *origin: Any) -> Any:
        """A size; an int of Python for type(n)(value), as libraries call it."""
        return object.__new__(cls) if origin else int(value)

    def __init__(self, value: int, recipe: tuple, log: SizeLog) -> None:
        self._number, self.recipe, self.log = value, recipe, log

    @property
    def _value(self) -> int:
        """The value, for functions in C."""
        self.log.reads[id(self)] = self
        return self._number

    @staticmethod
    def of(value: int, recipe: tuple, log: SizeLog) -> RecordedSize:
        """A size with a value and an origin."""
        made = RecordedSize(value, recipe, log)
        log.expressions.append(made)
        _log_division(log, made)
        return made

    @property
    def __class__(self) -> type:  # for isinstance()
        return ComputedInt

    def plain(self) -> int:
        """The value, without a guard."""
        return self._number

    def compared(self, relation: str, other: int) -> bool:
        """The outcome of a comparison with an int, as a guard."""
        return _required(self.log, relation, self, other)

    def as_float(self) -> Any:
        """torch.sym_float(self)."""
        return RecordedFloat.of(self.log, "sym_float", self)

    def call_function(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a function of tensors, among whose arguments are floats or bools of this recording."""
        return call_with_values(self.log, func, args, kwargs)

    def __sym_sqrt__(self) -> Any:
        return RecordedFloat.of(self.log, "sym_sqrt", self.as_float())

    def chosen(self, condition: SymBool, t: Any, f: Any) -> RecordedSize | int:
        """torch.sym_ite(condition, t, f) in the recording of this size."""
        return _chosen(self.log, condition, t, f)

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
        self.log.add_guard(Guard("constant", value, 0, True, f"{text_of(self)} == {value}", (self, value)))
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
            return RecordedSize.of(self.plain() ** other, ("**", self, other), self.log)
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

    Functions in C receive its value as an argument, and the node of the call receives the RecordedFloat. It is no float, so that they
    cannot read the value otherwise without a guard that it is the same in all runs.
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
        made = RecordedFloat(found, (kind, *operands), log)
        _log_division(log, made)
        return made

    @property
    def __class__(self) -> type:  # for isinstance(); functions in C see that it is no float
        return float

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
        self.log.add_guard(Guard("constant", self._value, 0, True, f"{text_of(self)} == {self._value}", (self, self._value)))
        return self._value

    def _whole(self, kind: str, function: Callable) -> RecordedSize:
        return RecordedSize.of(function(self._value), (kind, self), self.log)

    def __round__(self, *digits: Any) -> Any:
        return round(self._specialised(), *digits) if digits and digits[0] is not None else self._whole("round", round)

    def __ceil__(self) -> RecordedSize:
        return self._whole("ceil", math.ceil)

    def __floor__(self) -> RecordedSize:
        return self._whole("floor", math.floor)

    def __trunc__(self) -> RecordedSize:
        return self._whole("trunc", math.trunc)

    def call_function(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a function of tensors, among whose arguments are floats or bools of this recording."""
        return call_with_values(self.log, func, args, kwargs)

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

    def __torch_function__(self, func: Any, _types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return call_with_values(self.log, func, args, kwargs or {})


FLOAT_OPERATIONS: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "neg": operator.neg, "abs": abs, "sym_float": float, "sym_sqrt": math.sqrt,
}  # fmt: skip


def _float_result(log: SizeLog, kind: str, a: Any, b: Any) -> Any:
    """The float that an operation of numbers gives, one of which is a RecordedSize or RecordedFloat."""
    if _is_unbacked(a) or _is_unbacked(b):
        return NotImplemented
    operands = [_as_python(v) for v in (a, b)]
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


def _log_division(log: SizeLog, made: Any) -> None:
    """Notes by what a number is divided. A graph that does not compute the number requires that the divisor is not 0."""
    kind, *operands = made.recipe
    if kind == "**" and type(value_of(operands[1])) is float and not value_of(operands[1]) >= 0:
        operands.reverse()
    elif kind not in ("/", "//", "%"):
        return
    if type(operands[1]) in (RecordedSize, RecordedFloat):
        log.divisions.append((made, operands[1]))


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
    outcome = _RELATIONS[relation](value_of(left), value_of(right))
    log.add_guard(guard_of(relation, left, right, outcome))
    return outcome


def _chosen(log: SizeLog, condition: SymBool, t: Any, f: Any) -> Any:
    compared = [v for c in condition.comparisons() for v in c.operands]
    if not all(type(v) in (int, RecordedSize) for v in (t, f, *compared)):
        return t if condition else f
    log.choices.append(condition)
    return RecordedSize.of(value_of(t if condition._value else f), ("sym_ite", condition, t, f), log)


# ---- Calls


def call_with_values(log: SizeLog, func: Any, args: tuple, kwargs: dict) -> Any:
    """Calls a function of tensors. One in C receives values instead of floats and bools of the recording, which passed() restores."""
    if type(func) is OverridableFunction:
        count = len(log.calls)
        try:
            return func.__wrapped__(*args, **kwargs)
        except TypeError as e:  # it passes its arguments to the engine
            if "RecordedFloat" not in str(e) or len(log.calls) > count:
                raise
        func = func.__wrapped__
    found: dict[tuple[type, Any], Any] = {}

    def plain(value: Any) -> Any:
        if type(value) in (RecordedFloat, SymBool):
            number = value_of(value)
            other = found.setdefault((type(number), number), value)
            if text_of(other) != text_of(value):  # nothing distinguishes them in the call
                _ = (bool(other), bool(value)) if type(value) is SymBool else other.compared("==", value)
            return number
        if type(value) in (list, tuple):
            return type(value)(map(plain, value))
        return {k: plain(v) for k, v in value.items()} if type(value) is dict else value

    args, kwargs = plain(args), plain(kwargs)
    log.choices += [v for v in found.values() if type(v) is SymBool]
    log.passed.append(found)
    try:
        return func(*args, **kwargs)
    finally:
        log.passed.pop()


def passed(log: SizeLog, value: Any) -> Any:
    """The float or bool of the recording that the running call has received as this value; otherwise the value."""
    if type(value) not in (float, bool) or not log.passed:
        return value
    return log.passed[-1].get((type(value), value), value)


def with_sizes(log: SizeLog, func: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a call with sizes in place of the ints that a function in C has read of them.

    Only sizes that their values in a few recordings do not determine, and only where one int has the value and one size.
    """
    reads = log.take_reads()
    if all(map(is_polynomial, reads)):
        return args, kwargs
    schema = func._schema.arguments if hasattr(func, "_schema") else []
    allowed = {a.name for a in schema if str(a.type).startswith(("SymInt", "Scalar", "Tensor"))}
    places = [n.name in allowed for n in schema[: len(args)]]
    places += [False] * (len(args) - len(places))
    texts: dict[int, dict[str, RecordedSize]] = {}
    for size in reads:
        texts.setdefault(size.plain(), {}).setdefault(text_of(size), size)
    given = [*(v for v, is_place in zip(args, places) if is_place), *(v for k, v in kwargs.items() if k in allowed)]
    ints = [n for v in given for n in (v if isinstance(v, (list, tuple)) else (v,)) if type(n) is int]
    found = {n: next(iter(sizes.values())) for n, sizes in texts.items() if len(sizes) == 1 and ints.count(n) == 1}
    found = {n: size for n, size in found.items() if not is_polynomial(size)}
    matched = {text_of(size) for size in found.values()}
    log.unmatched += [size for size in reads if text_of(size) not in matched]

    def put(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(put, value)) if type(value) in (list, tuple) else value
        return found.get(value, value) if type(value) is int else value

    args = tuple(put(v) if is_place else v for v, is_place in zip(args, places))
    return args, {k: put(v) if k in allowed else v for k, v in kwargs.items()}


def is_polynomial(size: Any) -> bool:
    """Whether a number is a sum of products of sizes, which a few recordings determine."""
    if type(size) is not RecordedSize or size.recipe[0] in ORIGINS:
        return True
    return size.recipe[0] in ("+", "-", "*", "neg") and all(map(is_polynomial, operands_of(size)))


LAYOUT = frozenset({"stride", "offset"})  # kinds of sizes that are numbers of a tensor's layout
ORIGINS = frozenset({"size", "input", *LAYOUT})  # kinds of sizes that are computed from no others
CHOICES = frozenset({"sym_ite", "sym_max", "sym_min"})  # kinds of sizes that are one of their operands


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


def require_arguments(log: SizeLog, arguments: Any, found: set[int] | None = None) -> None:
    """Makes guards of the sizes and ints among the arguments of a call that fails: the program may catch its error, and a call with
    others may not fail."""
    found = set() if found is None else found
    for value in arguments.values() if isinstance(arguments, dict) else arguments:
        if isinstance(value, (list, tuple, dict)):
            require_arguments(log, value, found)
        elif isinstance(value, slice):
            require_arguments(log, (value.start, value.stop, value.step), found)
        elif hasattr(type(value), "require_sizes"):
            value.require_sizes()
        elif type(value) in (RecordedSize, RecordedFloat):
            _plain(value)
        elif type(value) is SymBool:
            bool(value)
        elif type(value) is int and value not in found:  # a function in C has read it
            found.add(value)
            for size in list(log.expressions):
                if size.plain() == value:
                    _plain(size)


def value_of(value: Any) -> Any:
    """The number or bool, without a guard."""
    return value.plain() if isinstance(value, RecordedSize) else value._value if type(value) in (SymBool, RecordedFloat) else value


def guard_of(relation: str, left: Any, right: Any, outcome: bool) -> Guard:
    """The guard that a comparison has an outcome."""
    text = f"{text_of(left)} {relation} {text_of(right)}"
    return Guard(relation, value_of(left), value_of(right), outcome, text if outcome else f"not ({text})", (left, right))


def guards_of(condition: SymBool) -> list[Guard]:
    """Guards that all comparisons of a bool have their outcomes."""
    return [guard_of(c.sign, *c.operands, c._value) for c in condition.comparisons()]


def operands_of(size: RecordedSize) -> list[Any]:
    """The numbers that a size was computed from; none of one that a tensor has, or that is an argument."""
    kind, *operands = size.recipe
    if kind == "sym_ite":
        return [*operands[1:], *(o for c in operands[0].comparisons() for o in c.operands)]
    return [] if kind in ORIGINS else operands


def origins(value: Any) -> Iterator[RecordedSize]:
    """The numbers of tensors that a number was computed from."""
    if type(value) in (RecordedSize, RecordedFloat):
        if value.recipe[0] in ORIGINS:
            yield value
        for operand in operands_of(value):
            yield from origins(operand)


def text_of(value: Any) -> str:
    """How the value was computed, as text."""
    if type(value) is SymBool:
        parts = [text_of(o) if value.sign in _RELATIONS or type(o) is not SymBool else f"({text_of(o)})" for o in value.operands]
        sign = {"and": "&", "or": "|", "eq": "==", "xor": "!="}.get(value.sign, value.sign)
        return f"not {parts[0]}" if sign == "not" else f" {sign} ".join(parts)
    if type(value) not in (RecordedSize, RecordedFloat):
        return str(value)
    kind, *operands = value.recipe
    if kind in CHOICES or kind in _CALLED:
        return f"{kind}({', '.join(map(text_of, operands))})"
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
    compound = [type(o) in (RecordedSize, RecordedFloat) and o.recipe[0] not in ORIGINS | _CALLED for o in operands]
    left, right = (f"({text_of(o)})" if c else text_of(o) for o, c in zip(operands, compound))
    return f"{left} {kind} {right}"


_RELATIONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CALLED = frozenset({"abs", "ceil", "floor", "round", "sym_float", "sym_sqrt", "trunc"})  # kinds that are written as calls
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
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
        return RecordedSize.of(_computed(function, a, b), (symbol, a, b), self.log)

    return compute


for _symbol, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod")):
    setattr(RecordedSize, f"__{_name}__", _arithmetic(_symbol, False))
    setattr(RecordedSize, f"__r{_name}__", _arithmetic(_symbol, True))
for _symbol, _function in _RELATIONS.items():
    setattr(RecordedSize, f"__{_function.__name__}__", lambda self, other, relation=_symbol: _compared(relation, self, other))
    setattr(RecordedFloat, f"__{_function.__name__}__", _float_comparison(_symbol))


set_recorded_size_type(RecordedSize)


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
RecordedSize.__neg__ = lambda self: RecordedSize.of(-self.plain(), ("neg", self), self.log)


# ---- Ranges of floats

Interval = tuple[float, float]
_EVERYTHING: Interval = (-math.inf, math.inf)


def bounds_of(column: tuple[Any, ...], of_ints: Callable[[tuple[Any, ...]], Interval]) -> Interval:
    """Bounds of a number for all sizes, by interval arithmetic on its operations.

    Args:
        column: the number in several recordings, in which it was computed in the same way.
        of_ints: bounds of an int in the recordings.
    """
    first = column[0]
    if type(first) is not RecordedFloat:
        values = tuple(map(value_of, column))
        return of_ints(column) if type(values[0]) is int else (values[0], values[0]) if values[0] == values[0] else _EVERYTHING
    operands = [bounds_of(part, of_ints) for part in zip(*(v.recipe[1:] for v in column))]
    if all(low == high for low, high in operands):  # the same in all runs
        return first._value, first._value
    low, high = _interval(first.recipe[0], *operands)
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


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
