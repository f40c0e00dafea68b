"""Builtin functions and classes: what their calls return."""

from __future__ import annotations

import abc
import collections
import copy
import functools
import itertools
import math
import operator
import types
from collections.abc import Callable
from typing import Any

from .. import _C
from ._attributes import _MISSING, lookup, raise_
from ._operators import BINARY, COMPARE, IN_PLACE, fold
from ._source import CALL, CHECK_EQUAL, CHECK_IS, constant
from ._symbols import is_symbolic_operand
from ._values import (
    DELETED,
    Break,
    BuiltinMethod,
    Constant,
    DictValue,
    ExceptionValue,
    FunctionValue,
    IdValue,
    IteratorValue,
    MethodValue,
    ObjectValue,
    PartialValue,
    SequenceValue,
    SetValue,
    SliceValue,
    SuperValue,
    SymbolValue,
    TensorValue,
    Value,
)  # fmt: skip
from ._wrap import hash_key

handlers: dict[Any, Callable] = {}
constructors: dict[type, Callable] = {}
# Functions of numbers and strings without effects, computed where all arguments are constants.
_PURE = [
    abs, round, divmod, pow, chr, ord, hex, bin, oct, repr, ascii, hash, format, math.prod, operator.index, operator.truth, operator.not_,
    *(f for f in vars(math).values() if isinstance(f, types.BuiltinFunctionType)),
]  # fmt: skip


def handles(*functions: Any) -> Callable:
    """Registers the handler of calls of functions."""

    def register(handler: Callable) -> Callable:
        for function in functions:
            (constructors if isinstance(function, type) else handlers)[function] = handler
        return handler

    return register


def _only_positional(name: str, kwargs: dict) -> None:
    if kwargs:
        raise Break(f"{name}() with keyword arguments")


def _pure(function: Callable) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        values = [ex.plain(ex.real(a)) for a in args]
        if values and isinstance(values[0], TensorValue):
            if function in (abs, round, pow, divmod):
                if function is divmod:
                    raise Break("divmod of a tensor")
                return ex.call_in_graph("call_function", function, args, kwargs)
            if function is operator.truth:
                return Constant(ex.truth(values[0]))
            raise Break(f"{function.__name__} of a tensor")
        if function in (repr, ascii, format, hash) and not all(
            isinstance(v, (Constant, SequenceValue, DictValue)) for v in values
        ):
            if function is repr:
                found = ex.call_method_named(values[0], "__repr__", [])
                if found is not None:
                    return found
            raise Break(f"{function.__name__} of a {type(values[0]).__name__}")
        if function in (abs, round, repr, hash) and isinstance(values[0], ObjectValue):
            found = ex.call_method_named(values[0], f"__{function.__name__}__", args[1:])
            if found is not None:
                return found
        constants = [ex.python_value(v) for v in values]
        for c in constants:
            if function in (hash,) and isinstance(c, (str, bytes)):
                continue
            if not isinstance(c, (int, float, complex, str, bytes, tuple, list, dict, type(None), range, _C.dtype, _C.device)) and not (
                ex.is_numpy_scalar(c)
            ):
                raise Break(f"{function.__name__} of a {type(c).__name__}")
        if function is hash and any(not isinstance(c, (int, float, str, bytes, type(None))) for c in constants):
            raise Break("hash()")
        keywords = {k: ex.python_value(v) for k, v in kwargs.items()}
        result = fold(functools.partial(function, **keywords) if keywords else function, *constants)
        return ex.constant_value(result.value)

    return handler


for _function in _PURE:
    handlers[_function] = _pure(_function)
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


@handles(operator.setitem)
def _setitem(ex, args, kwargs):
    ex.set_item(*args)
    return Constant(None)


@handles(operator.delitem)
def _delitem(ex, args, kwargs):
    ex.delete_item(*args)
    return Constant(None)


@handles(len)
def _len(ex, args, kwargs):
    return ex.length(*args)


def _classes(ex: Any, value: Value) -> tuple:
    value = ex.real(value)
    if isinstance(value, Constant) and isinstance(value.value, (type, types.UnionType)):
        found: tuple = (value.value,)
    elif isinstance(value, SequenceValue) and issubclass(value.cls, tuple):
        found = tuple(c for item in value.items for c in _classes(ex, item))
    else:
        raise Break("isinstance() of something that is not a class")
    for cls in found:
        _check_hooks(ex, cls)
    return found


def _check_hooks(ex: Any, cls: Any) -> None:
    """Ends the graph if isinstance(x, cls) may change from call to call without a guard."""
    if isinstance(cls, types.UnionType):
        for part in cls.__args__:
            _check_hooks(ex, part)
        return
    hooks = [lookup(type(cls), name) for name in ("__instancecheck__", "__subclasscheck__")]
    if hooks == [vars(abc.ABCMeta)["__instancecheck__"], vars(abc.ABCMeta)["__subclasscheck__"]]:
        # Its results are those of its caches, which only the registration of another class changes.
        ex.guards.check(CHECK_EQUAL, constant(abc.get_cache_token).then(CALL), abc.get_cache_token())
    elif any(isinstance(h, types.FunctionType) for h in hooks) and not type(cls).__module__.startswith("teletensor"):
        raise Break("a metaclass with __instancecheck__ or __subclasscheck__")


def _check_instance(ex, args, kwargs):
    value, classes = ex.real(args[0]), _classes(ex, args[1])
    cls = value.cls
    if isinstance(value, Constant):
        return Constant(isinstance(value.value, classes))
    if isinstance(value, (ObjectValue, TensorValue)) and value.original is not None:
        return Constant(isinstance(value.original, classes))
    if isinstance(value, TensorValue):
        return Constant(isinstance(value.example, classes))
    return Constant(issubclass(cls, classes))


def _check_subclass(ex, args, kwargs):
    value = ex.real(args[0])
    if not (isinstance(value, Constant) and isinstance(value.value, type)):
        raise Break("issubclass() of something that is not a class")
    return Constant(issubclass(value.value, _classes(ex, args[1])))


handlers[isinstance], handlers[issubclass] = _check_instance, _check_subclass


@handles(callable)
def _callable(ex, args, kwargs):
    value = ex.real(args[0])
    if isinstance(value, Constant):
        return Constant(callable(value.value))
    if isinstance(value, (FunctionValue, MethodValue, BuiltinMethod, PartialValue)):
        return Constant(True)
    return Constant(lookup(value.cls, "__call__") is not _MISSING)


def _name(ex: Any, value: Value) -> str:
    value = ex.real(value)
    if not (isinstance(value, Constant) and isinstance(value.value, str)):
        raise Break("the name of an attribute is not a string")
    return value.value


@handles(getattr)
def _getattr(ex, args, kwargs):
    from ._values import Raised

    try:
        return ex.get_attribute(args[0], _name(ex, args[1]))
    except Raised as e:
        if len(args) > 2 and issubclass(e.value.cls, AttributeError):
            return args[2]
        raise


@handles(hasattr)
def _hasattr(ex, args, kwargs):
    return Constant(ex.has_attribute(args[0], _name(ex, args[1])))


@handles(setattr)
def _setattr(ex, args, kwargs):
    ex.set_attribute(args[0], _name(ex, args[1]), args[2])
    return Constant(None)


@handles(delattr)
def _delattr(ex, args, kwargs):
    ex.set_attribute(args[0], _name(ex, args[1]), DELETED)
    return Constant(None)


@handles(iter)
def _iter(ex, args, kwargs):
    if len(args) != 1:
        raise Break("iter() with a sentinel")
    return ex.iterate(args[0])


@handles(next)
def _next(ex, args, kwargs):
    if len(args) == 1:
        return ex.advance(args[0])
    found = ex.next_or_none(args[0])
    return args[1] if found is None else found


def _quantifier(stops_at: bool) -> Callable:
    def handler(ex, args, kwargs):
        iterator = ex.iterate(args[0])
        while (item := ex.next_or_none(iterator)) is not None:
            if ex.truth(item) == stops_at:
                return Constant(stops_at)
        return Constant(not stops_at)

    return handler


handlers[any], handlers[all] = _quantifier(True), _quantifier(False)


@handles(sum)
def _sum(ex, args, kwargs):
    start = args[1] if len(args) > 1 else kwargs.get("start", Constant(0))
    for item in ex.elements(args[0]):
        start = ex.binary("+", start, item)
    return start


def _extreme(sign: str) -> Callable:
    def handler(ex, args, kwargs):
        key, default = kwargs.get("key"), kwargs.get("default")
        if set(kwargs) - {"key", "default"}:
            raise Break("min() or max() with other keyword arguments")
        items = ex.elements(args[0]) if len(args) == 1 else list(args)
        if not items:
            return default if default is not None else raise_(ValueError, f"{'min' if sign == '<' else 'max'}() arg is an empty sequence")
        has_key = key is not None and not (isinstance(ex.real(key), Constant) and ex.real(key).value is None)
        real = [ex.real(i) for i in items]
        if not has_key and all(map(is_symbolic_operand, real)):
            return functools.reduce(functools.partial(ex.operation, "min" if sign == "<" else "max"), real)
        best = items[0]
        best_key = ex.call(key, [best], {}) if has_key else best
        for item in items[1:]:
            item_key = ex.call(key, [item], {}) if has_key else item
            if ex.truth(ex.compare(sign, item_key, best_key)):
                best, best_key = item, item_key
        return best

    return handler


handlers[min], handlers[max] = _extreme("<"), _extreme(">")


@handles(sorted)
def _sorted(ex, args, kwargs):
    value = ex.real(args[0])
    plain = isinstance(value, SetValue) and not kwargs  # elements that differ have one order
    result = SequenceValue(ex.unordered(value) if plain else ex.elements(value), list)
    sort(ex, result, kwargs)
    return result


def sort(ex: Any, value: SequenceValue, kwargs: dict[str, Value]) -> None:
    """list.sort() of numbers or strings, or by keys that are."""
    key, reverse = kwargs.get("key"), kwargs.get("reverse")
    if set(kwargs) - {"key", "reverse"}:
        raise Break("sort() with other keyword arguments")
    has_key = key is not None and not (isinstance(ex.real(key), Constant) and ex.real(key).value is None)
    keys = [ex.python_value(ex.call(key, [i], {}) if has_key else i) for i in value.items]
    if not all(isinstance(k, (int, float, str, bytes, tuple)) for k in keys):
        raise Break("sort() of values that are not numbers or strings")
    try:
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse is not None and ex.truth(reverse))
    except TypeError as e:
        raise_(TypeError, str(e))
    value.items[:] = [value.items[i] for i in order]


@handles(reversed)
def _reversed(ex, args, kwargs):
    value = ex.real(args[0])
    if isinstance(value, SequenceValue):
        return ex.over(value.items[::-1])
    if isinstance(value, DictValue):
        return ex.over([k for k, _ in value.items.values()][::-1])
    if isinstance(value, Constant) and isinstance(value.value, (range, str)):
        return ex.over([Constant(c) for c in reversed(value.value)])
    found = ex.call_method_named(value, "__reversed__", [])
    if found is None:
        raise Break(f"reversed() of a {type(value).__name__}")
    return found


@handles(zip)
def _zip(ex, args, kwargs):
    strict = "strict" in kwargs and ex.truth(kwargs["strict"])
    iterators = [ex.iterate(a) for a in args]
    owned = [i is not ex.real(a) for i, a in zip(iterators, args)]

    def advance():
        items = []
        for position, iterator in enumerate(iterators):
            item = ex.next_or_none(iterator)
            if item is None:
                if strict and (position or any(ex.next_or_none(i) is not None for i in iterators[1:])):
                    raise Break("zip() of arguments of different lengths")
                raise_(StopIteration)
            items.append(item)
        if not items:
            raise_(StopIteration)
        return SequenceValue(items, tuple)

    def rest():
        if not all(owned) or strict:
            raise Break("zip() at a graph break")
        return [SequenceValue(list(items), tuple) for items in zip(*(i.rest() for i in iterators))]

    return IteratorValue(advance, rest, zip)


@handles(enumerate)
def _enumerate(ex, args, kwargs):
    start = ex.python_value(args[1] if len(args) > 1 else kwargs.get("start", Constant(0)))
    iterator = ex.iterate(args[0])
    is_owned = iterator is not ex.real(args[0])
    count = [start]

    def advance():
        item = ex.advance(iterator)
        count[0] += 1
        return SequenceValue([Constant(count[0] - 1), item], tuple)

    def rest():
        if not is_owned:
            raise Break("enumerate() of an iterator at a graph break")
        return [SequenceValue([Constant(i), item], tuple) for i, item in enumerate(iterator.rest(), count[0])]

    return IteratorValue(advance, rest, enumerate)


@handles(map)
def _map(ex, args, kwargs):
    iterators = [ex.iterate(a) for a in args[1:]]

    def advance():
        items = [ex.advance(i) for i in iterators]
        return ex.call(args[0], items, {})

    return IteratorValue(advance, None, map)


@handles(filter)
def _filter(ex, args, kwargs):
    iterator = ex.iterate(args[1])
    is_none = isinstance(ex.real(args[0]), Constant) and ex.real(args[0]).value is None

    def advance():
        while True:
            item = ex.advance(iterator)
            if ex.truth(item if is_none else ex.call(args[0], [item], {})):
                return item

    return IteratorValue(advance, None, filter)


@handles(itertools.chain)
def _chain(ex, args, kwargs):
    iterables = list(args)
    current: list[Value] = []

    def advance():
        while True:
            if not current:
                if not iterables:
                    raise_(StopIteration)
                current.append(ex.iterate(iterables.pop(0)))
            item = ex.next_or_none(current[0])
            if item is not None:
                return item
            current.clear()

    return IteratorValue(advance, None, itertools.chain)


@handles(itertools.islice)
def _islice(ex, args, kwargs):
    limits = [ex.python_value(a) for a in args[1:]]
    iterator = ex.iterate(args[0])
    wanted = iter(range(*slice(*limits).indices(1 << 30)))
    position = [0]

    def advance():
        try:
            target = next(wanted)
        except StopIteration:
            raise_(StopIteration)
        while True:
            item = ex.advance(iterator)
            position[0] += 1
            if position[0] - 1 == target:
                return item

    return IteratorValue(advance, None, itertools.islice)


@handles(functools.reduce)
def _reduce(ex, args, kwargs):
    items = ex.elements(args[1])
    if len(args) > 2:
        items.insert(0, args[2])
    if not items:
        return raise_(TypeError, "reduce() of empty iterable with no initial value")
    result = items[0]
    for item in items[1:]:
        result = ex.call(args[0], [result, item], {})
    return result


@handles(functools.partial)
def _partial(ex, args, kwargs):
    return PartialValue(ex.real(args[0]), list(args[1:]), dict(kwargs))


@handles(range)
def _range(ex, args, kwargs):
    return fold(range, *(ex.index_of(a) for a in args))


@handles(slice)
def _slice(ex, args, kwargs):
    parts = [Constant(None), args[0], Constant(None)] if len(args) == 1 else [*args, *[Constant(None)] * (3 - len(args))]
    return SliceValue([ex.real(p) for p in parts])


@handles(type)
def _type(ex, args, kwargs):
    if len(args) != 1:
        raise Break("a class is created")
    return ex.type_constant(ex.real(args[0]).cls)


@handles(super)
def _super(ex, args, kwargs):
    if args:
        owner = ex.real(args[0])
        if not (isinstance(owner, Constant) and isinstance(owner.value, type)) or len(args) != 2:
            raise Break("super() of something that is not a class")
        return SuperValue(owner.value, ex.real(args[1]))
    frame = ex.frame
    cell = frame.cells.get("__class__")
    first = frame.first_argument()
    if cell is None or cell.content is None or first is None:
        raise Break("super() outside of a method")
    owner = ex.real(cell.content)
    if cell.source is not None:
        ex.guards.check(CHECK_IS, owner.source or cell.source, owner.value)
    return SuperValue(owner.value, ex.real(first))


@handles(object)
def _object(ex, args, kwargs):
    return ObjectValue(object)


def _number(cls: type) -> Callable:
    method = {int: "__int__", float: "__float__", complex: "__complex__", bool: "__bool__"}[cls]

    def handler(ex, args, kwargs):
        if not args and not kwargs:
            return Constant(cls())
        value = ex.real(args[0])
        if isinstance(value, SymbolValue) and cls is int and len(args) == 1:
            return value
        if isinstance(value, TensorValue):
            raise Break(f"{cls.__name__}() of a tensor reads its value")
        if cls is bool:
            return Constant(ex.truth(value))
        if isinstance(value, ObjectValue):
            found = ex.call_method_named(value, method, [])
            if found is not None:
                return found
        constants = [ex.python_value(a) for a in args]
        if not isinstance(constants[0], (int, float, complex, str, bytes)) and not ex.is_numpy_scalar(constants[0]):
            raise Break(f"{cls.__name__}() of a {type(constants[0]).__name__}")
        return fold(functools.partial(cls, **{k: ex.python_value(v) for k, v in kwargs.items()}), *constants)

    return handler


for _cls in (int, float, complex, bool):
    constructors[_cls] = _number(_cls)


@handles(str)
def _str(ex, args, kwargs):
    if not args:
        return Constant("")
    return text_of(ex, args[0], str)


def text_of(ex: Any, value: Value, function: Callable) -> Value:
    """str(value) or repr(value)."""
    value = ex.real(value)
    if isinstance(value, ObjectValue):
        for name in ("__str__", "__repr__") if function is str else ("__repr__",):
            found = ex.call_method_named(value, name, [])
            if found is not None:
                return found
        raise Break("the text of an object")
    if isinstance(value, ExceptionValue):
        if function is str and lookup(value.cls, "__str__") is BaseException.__str__:
            if len(value.args) == 1:
                return text_of(ex, value.args[0], str)
            return Constant(str(tuple(ex.python_value(a) for a in value.args))) if value.args else Constant("")
        found = ex.call_method_named(value, "__str__", [])
        if found is not None:
            return found
        raise Break("the text of an exception")
    obj = ex.python_value(value)
    if not _has_plain_text(obj) and not ex.is_numpy_scalar(obj):
        raise Break(f"the text of a {type(obj).__name__}")
    return fold(function, obj)


def _has_plain_text(obj: Any) -> bool:
    if isinstance(obj, (list, tuple, set, frozenset)):
        return all(_has_plain_text(o) for o in obj)
    if isinstance(obj, dict):
        return all(_has_plain_text(o) for pair in obj.items() for o in pair)
    return isinstance(obj, (int, float, complex, str, bytes, type(None), type, range, type(Ellipsis), _C.dtype, _C.device))


def _sequence(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        _only_positional(cls.__name__, kwargs)
        return SequenceValue(ex.elements(args[0]) if args else [], cls)

    return handler


constructors[list], constructors[tuple] = _sequence(list), _sequence(tuple)


@handles(_C.Size)
def _size(ex, args, kwargs):
    items = ex.elements(args[0]) if args else []
    if not all(isinstance(v, SymbolValue) or isinstance(v, Constant) and isinstance(v.value, int) for v in map(ex.real, items)):
        raise Break("a Size of values that are not numbers")
    return SequenceValue(items, _C.Size)


def _set_of(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        items: dict[Any, Value] = {}
        for item in ex.unordered(args[0]) if args else []:
            items.setdefault(hash_key(ex.real(item)), item)
        return SetValue(items, cls)

    return handler


constructors[set], constructors[frozenset] = _set_of(set), _set_of(frozenset)


def update_dict(ex: Any, value: DictValue, args: list[Value], kwargs: dict[str, Value]) -> None:
    """dict.update()."""
    if args:
        other = ex.real(args[0])
        if isinstance(other, DictValue):
            pairs = [(k, v) for k, v in other.items.values()]
        elif isinstance(other, ObjectValue):
            if ex.has_attribute(other, "keys"):
                keys = ex.elements(ex.call(ex.get_attribute(other, "keys"), [], {}))
                pairs = [(k, ex.get_item(other, k)) for k in keys]
            else:
                pairs = [tuple(ex.elements(p)) for p in ex.elements(other)]
        else:
            pairs = [tuple(ex.elements(p)) for p in ex.elements(other)]
        for pair in pairs:
            if len(pair) != 2:
                raise Break("dict() of elements that are not pairs")
            ex.write_entry(value, hash_key(ex.real(pair[0])), pair[0], pair[1])
    for k, v in kwargs.items():
        ex.write_entry(value, k, Constant(k), v)


def _dict_of(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        value = DictValue({}, cls)
        if cls is collections.defaultdict:
            value.default_factory = ex.real(args[0]) if args else Constant(None)
            args = args[1:]
        update_dict(ex, value, args, kwargs)
        return value

    return handler


for _cls in (dict, collections.OrderedDict, collections.defaultdict):
    constructors[_cls] = _dict_of(_cls)


@handles(id)
def _id(ex, args, kwargs):
    value = ex.real(args[0])
    if not isinstance(value, (TensorValue, ObjectValue, FunctionValue, DictValue)) and not (
        isinstance(value, SequenceValue) and value.cls is list
    ):
        raise Break(f"id() of a {type(value).__name__}")
    ex.compares_identity = True
    return IdValue(value)


@handles(locals, globals, vars, dir, print, input, open, exec, eval, compile, __import__, breakpoint)
def _unsupported(ex, args, kwargs):
    raise Break("a call of a builtin function with effects outside of the graph")


@handles(_C._is_wrapper)
def _is_wrapper(ex, args, kwargs):
    return Constant(False)


@handles(_C._has_torch_function, _C._has_torch_function_unary, _C._has_torch_function_variadic)
def _has_torch_function(ex, args, kwargs):
    for value in args:
        for part in ex.elements(value) if isinstance(ex.real(value), SequenceValue) else [value]:
            if not isinstance(ex.real(part), (TensorValue, Constant, SequenceValue)):
                raise Break("__torch_function__")
    return Constant(False)


@handles(types.MethodType)
def _method(ex, args, kwargs):
    return MethodValue(ex.real(args[0]), ex.real(args[1]))


@handles(copy.copy)
def _copy(ex, args, kwargs):
    value = ex.real(args[0])
    if isinstance(value, SequenceValue) and value.cls in (list, tuple):
        return SequenceValue(list(value.items), value.cls) if value.cls is list else value
    if isinstance(value, DictValue) and value.cls is dict:
        return DictValue(dict(value.items))
    if isinstance(value, Constant):
        return value
    raise Break(f"copy() of a {type(value).__name__}")



def update_wrapper(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """functools.update_wrapper() of a function that was made in the function."""
    wrapper, wrapped = (ex.real(kwargs.get(n) or (args[i] if i < len(args) else None)) for i, n in enumerate(("wrapper", "wrapped")))
    if not isinstance(wrapper, FunctionValue) or wrapper.original is not None or not isinstance(wrapped, FunctionValue):
        raise Break("functools.wraps() of something else than a function")
    if wrapped.original is not None and wrapped.original.__dict__:
        raise Break("functools.wraps() of a function with attributes")
    wrapper.name, wrapper.qualname = wrapped.name, wrapped.qualname
    if wrapped.original is not None:
        for name in ("__module__", "__doc__", "__annotations__"):
            wrapper.attributes[name] = Constant(getattr(wrapped.original, name))
    wrapper.attributes.update(wrapped.attributes)
    wrapper.attributes["__wrapped__"] = wrapped
    return wrapper
