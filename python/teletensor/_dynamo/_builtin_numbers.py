"""Numbers, and functions of constants: arithmetic, math, int(), round(), range()."""

from __future__ import annotations

import bisect
import functools
import math
import operator
import os
import types
from collections.abc import Callable
from typing import Any

from .. import _C, accelerator, cuda
from ._builtin_text import has_plain_text, text_of
from ._comparisons import COMPARE, fold
from ._handlers import constructors, handlers, handles
from ._operators import BINARY, IN_PLACE
from ._source import CALL, CHECK_EQUAL, constant
from ._symbols import is_symbolic_operand
from ._unbacked import is_item
from ._values import (
    Break,
    Constant,
    DictValue,
    ExceptionValue,
    ObjectValue,
    RunTimeNumber,
    SequenceValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)

# Functions of numbers and strings without effects, computed where all arguments are constants.
_PURE = [
    abs, round, divmod, pow, chr, ord, hex, bin, oct, repr, ascii, format, math.prod, operator.index, operator.truth, operator.not_,
    os.fspath,
    *(f for f in vars(math).values() if isinstance(f, types.BuiltinFunctionType)),
]  # fmt: skip


def _pure(function: Callable) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) == 1 and not kwargs and getattr(function, "__module__", "") == "math":
            found = ex.computed_float(f"math.{function.__name__}({{}})", function, ex.real(args[0]))
            if found is not None:
                return found
        values = [ex.plain(ex.real(a)) for a in args]
        if function is abs and len(values) == 1 and is_item(values[0]):
            return ex.float_of_items("abs", values[0])
        if values and isinstance(values[0], TensorValue):
            if function in (abs, round, pow, divmod):
                if function is divmod:
                    raise Break("divmod of a tensor")
                return ex.call_in_graph("call_function", function, args, kwargs)
            if function is operator.truth:
                return Constant(ex.truth(values[0]))
            raise Break(f"{function.__name__} of a tensor")
        if function is repr and len(values) == 1 and isinstance(values[0], ExceptionValue):
            return text_of(ex, values[0], repr)
        if function in (repr, ascii, format) and not all(isinstance(v, (Constant, SequenceValue, DictValue)) for v in values):
            if function is repr:
                found = ex.call_method_named(values[0], "__repr__", [])
                if found is not None:
                    return found
            raise Break(f"{function.__name__} of a {kind(values[0])}")
        if function in (abs, round, repr) and isinstance(values[0], ObjectValue):
            found = ex.call_method_named(values[0], f"__{function.__name__}__", args[1:])
            if found is not None:
                return found
        constants = [ex.python_value(v) for v in values]
        for c in constants:
            if not isinstance(c, (int, float, complex, str, bytes, tuple, list, dict, type(None), range, _C.dtype, _C.device)) and not (
                ex.is_numpy_scalar(c)
            ):
                raise Break(f"{function.__name__} of a {kind(c)}")
            if function in (repr, ascii, format) and not (has_plain_text(c) or ex.is_numpy_scalar(c)):
                raise Break(f"{function.__name__} of a {kind(c)}")
        keywords = {k: ex.python_value(v) for k, v in kwargs.items()}
        if function is format:
            ex.note_format(constants[-1])
        result = fold(functools.partial(function, **keywords) if keywords else function, *constants)
        return ex.constant_value(result.value)

    return handler


for _function in _PURE:
    handlers[_function] = _pure(_function)


# Of lists of numbers and strings; of others by their form in Python.
handlers[bisect.bisect_left], handlers[bisect.bisect_right] = _pure(bisect.bisect_left), _pure(bisect.bisect_right)
for _sign, (_, _function) in {**BINARY, **IN_PLACE}.items():
    handlers[_function] = lambda ex, args, kwargs, sign=_sign: ex.binary(sign, *args)
for _sign, (_, _, _function) in COMPARE.items():
    handlers[_function] = lambda ex, args, kwargs, sign=_sign: ex.compare(sign, *args)
handlers[operator.neg] = lambda ex, args, kwargs: ex.unary("UNARY_NEGATIVE", *args)
handlers[operator.pos] = lambda ex, args, kwargs: ex.unary("UNARY_POSITIVE", *args)
handlers[operator.invert] = handlers[operator.inv] = lambda ex, args, kwargs: ex.unary("UNARY_INVERT", *args)
handlers[operator.getitem] = lambda ex, args, kwargs: ex.get_item(*args)
handlers[operator.is_] = lambda ex, args, kwargs: Constant(ex.is_same(*args))
handlers[operator.is_not] = lambda ex, args, kwargs: Constant(not ex.is_same(*args))
handlers[operator.contains] = lambda ex, args, kwargs: Constant(ex.contains(*args))
handlers[operator.not_] = lambda ex, args, kwargs: Constant(not ex.truth(*args))
handlers[operator.truth] = lambda ex, args, kwargs: Constant(ex.truth(*args))


@handles(hash)
def _hash(ex, args, kwargs):
    return Constant(ex.hash_of(*args))


@handles(operator.index)
def _index(ex, args, kwargs):
    value = ex.real(args[0])
    return value if isinstance(value, SymbolValue) else _pure(operator.index)(ex, args, kwargs)


@handles(divmod)
def _divmod(ex, args, kwargs):
    values = [ex.real(a) for a in args]
    if len(values) == 2 and any(isinstance(v, SymbolValue) for v in values) and all(map(is_symbolic_operand, values)):
        return SequenceValue([ex.binary("//", *values), ex.binary("%", *values)], tuple)
    return _pure(divmod)(ex, args, kwargs)


@handles(math.prod)
def _prod(ex, args, kwargs):
    items = [ex.real(i) for i in ex.elements(args[0])] if len(args) == 1 and not kwargs else []
    if any(isinstance(i, SymbolValue) for i in items):
        return functools.reduce(lambda a, b: ex.binary("*", a, b), items)
    return _pure(math.prod)(ex, args, kwargs)


@handles(_C.device)
def _device(ex, args, kwargs):
    return fold(functools.partial(_C.device, **{k: ex.python_value(v) for k, v in kwargs.items()}), *map(ex.python_value, args))


@handles(range)
def _range(ex, args, kwargs):
    return fold(range, *(ex.index_of(a) for a in args))


def number_constructor(cls: type) -> Callable:
    """The handler of calls of int, float, complex or bool."""
    method = {int: "__int__", float: "__float__", complex: "__complex__", bool: "__bool__"}[cls]

    def handler(ex, args, kwargs):
        if not args and not kwargs:
            return Constant(cls())
        value = ex.as_number(ex.real(args[0])) if cls is int else ex.real(args[0])
        if isinstance(value, RunTimeNumber) and len(args) == 1 and not kwargs and cls in (int, float):
            return ex.converted_at_run_time(cls, value)
        if isinstance(value, SymbolValue) and cls is int and len(args) == 1:
            return value
        if cls is float and len(args) == 1 and not kwargs and is_item(value):
            return value
        if cls is float and len(args) == 1 and (found := ex.computed_float("float({})", float, value)) is not None:
            return found
        if isinstance(value, TensorValue):
            if cls in (int, float) and len(args) == 1 and not kwargs and ex.can_keep_item(value):
                item = ex.call_tensor_method(value, "item", [], {})
                if item.cls is cls:
                    return item
            raise Break(f"{cls.__name__}() of a tensor reads its value")
        if cls is bool:
            return Constant(ex.truth(value))
        if isinstance(value, ObjectValue):
            found = ex.call_method_named(value, method, [])
            if found is not None:
                return found
        constants = [ex.python_value(a) for a in args]
        if not isinstance(constants[0], (int, float, complex, str, bytes)) and not ex.is_numpy_scalar(constants[0]):
            raise Break(f"{cls.__name__}() of a {kind(constants[0])}")
        return fold(functools.partial(cls, **{k: ex.python_value(v) for k, v in kwargs.items()}), *constants)

    return handler


for _cls in (int, float, complex, bool):
    constructors[_cls] = number_constructor(_cls)


def _of_devices(query: Callable) -> Callable:
    """The handler of a function whose result is the same while the connection is."""

    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args or kwargs:
            raise Break(f"arguments of {query.__name__}()")
        result = query()
        ex.guards.check(CHECK_EQUAL, constant(query).then(CALL), result)
        return Constant(result)

    return handler


DEVICE_QUERIES = {
    query: _of_devices(query)
    for query in (cuda.is_available, cuda.device_count, cuda.is_bf16_supported, accelerator.is_available, accelerator.device_count)
}
