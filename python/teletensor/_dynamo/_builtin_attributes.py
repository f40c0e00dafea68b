"""Classes and attributes: isinstance(), getattr(), type(), super(), id()."""

from __future__ import annotations

import abc
import functools
import inspect
import sys
import types
import typing
from typing import Any

from .._ops.assertions import _assert, _assert_true
from ._attributes import MISSING
from ._handlers import handlers, handles
from ._source import (
    CALL,
    CHECK_EQUAL,
    CHECK_IS,
    CHECK_KEYS,
    CHECK_MISSING,
    CONSTANT,
    DICT_ITEM,
    FUNCTION_DEFAULTS,
    FUNCTION_KEYWORD_DEFAULTS,
    TUPLE_ITEM,
    Source,
    constant,
)
from ._values import (
    DELETED,
    Break,
    BuiltinMethod,
    BuiltValue,
    Constant,
    DictValue,
    FunctionValue,
    IdValue,
    MethodValue,
    ObjectValue,
    PartialValue,
    Raised,
    SequenceValue,
    SuperValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._warning_filters import Block


def _classes(ex: Any, value: Value) -> tuple:
    value = ex.real(value)
    if isinstance(value, Constant) and isinstance(value.value, (type, types.UnionType)):
        found: tuple = (value.value,)
    elif isinstance(value, Constant) and type(value.value) is type(typing.Iterable):
        found = (value.value.__origin__,)
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
    hooks = [ex.class_attribute(type(cls), name) for name in ("__instancecheck__", "__subclasscheck__")]
    if hooks == [vars(abc.ABCMeta)["__instancecheck__"], vars(abc.ABCMeta)["__subclasscheck__"]]:
        # Its results are those of its caches, which only the registration of another class changes.
        ex.guards.check(CHECK_EQUAL, constant(abc.get_cache_token).then(CALL), abc.get_cache_token())
    elif any(isinstance(h, types.FunctionType) for h in hooks) and not type(cls).__module__.startswith("teletensor"):
        raise Break("a metaclass with __instancecheck__ or __subclasscheck__")


def _check_instance(ex, args, kwargs):
    value, of = ex.real(args[0]), ex.real(args[1])
    cls = _class_of(value)
    hook = ex.class_attribute(type(of.value), "__instancecheck__") if isinstance(of, Constant) else None
    if isinstance(hook, types.FunctionType) and hook.__module__.partition(".")[0] not in ("abc", "typing", "teletensor"):
        if cls is of.value:
            return Constant(True)
        return Constant(ex.truth(ex.call(ex.wrap_class_function(hook), [of, value], {})))
    classes = _classes(ex, of)
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
    if isinstance(value, (FunctionValue, MethodValue, BuiltinMethod, PartialValue, BuiltValue)):
        return Constant(True)
    return Constant(ex.class_attribute(value.cls, "__call__") is not MISSING)


def _name(ex: Any, value: Value) -> str:
    value = ex.real(value)
    if not (isinstance(value, Constant) and isinstance(value.value, str)):
        raise Break("the name of an attribute is not a string")
    return value.value


@handles(getattr)
def _getattr(ex, args, kwargs):
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


@handles(type)
def _type(ex, args, kwargs):
    if len(args) != 1:
        raise Break("a class is created")
    return ex.type_constant(_class_of(ex.real(args[0])))


def _class_of(value: Value) -> type:
    if value.cls is Block:
        raise Break("the type of a catch_warnings object")
    return value.cls


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


@handles(sys.exc_info)
def _exc_info(ex, args, kwargs):
    raised = ex.handled_exception()
    return SequenceValue([Constant(None)] * 3 if raised is None else [ex.type_constant(raised.cls), raised, Constant(None)], tuple)


@handles(types.SimpleNamespace)
def _namespace(ex, args, kwargs):
    if args:
        raise Break("SimpleNamespace() gets wrong arguments")
    made = ObjectValue(types.SimpleNamespace)
    made.attributes.update(kwargs)
    return made


@handles(vars)
def _vars(ex, args, kwargs):
    if len(args) != 1 or kwargs or not isinstance(ex.real(args[0]), ObjectValue):
        raise Break("vars() of something else than an object")
    return ex.get_attribute(args[0], "__dict__")


@handles(object)
def _object(ex, args, kwargs):
    return ObjectValue(object)


@handles(types.MethodType)
def _method(ex, args, kwargs):
    return MethodValue(ex.real(args[0]), ex.real(args[1]))


@handles(id)
def _id(ex, args, kwargs):
    value = ex.real(args[0])
    if not isinstance(value, (TensorValue, ObjectValue, FunctionValue, DictValue)) and not (
        isinstance(value, SequenceValue) and value.cls is list
    ):
        raise Break(f"id() of a {kind(value)}")
    ex.note_identity(value)
    return IdValue(value)


@handles(functools.partial)
def _partial(ex, args, kwargs):
    function, rest = ex.real(args[0]), list(args[1:])
    if isinstance(function, PartialValue):  # Python joins them, if the inner one has no attributes
        ex.check_no_attributes(function)
        return PartialValue(function.function, [*function.args, *rest], {**function.kwargs, **kwargs})
    return PartialValue(function, rest, dict(kwargs))


def parts_of_annotation(function: Any) -> Any:
    """The handler of typing.get_args() or get_origin(): annotations do not change."""

    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        value = ex.real(args[0]) if len(args) == 1 and not kwargs else None
        if not isinstance(value, Constant):
            raise Break(f"{function.__name__}() of something else than an annotation")
        found = function(value.value)
        if isinstance(found, tuple):
            return SequenceValue([ex.wrap(part, constant(part)) for part in found], tuple)
        return ex.wrap(found, constant(found))

    return handler


def _guard_signature(ex: Any, function: Any, value: Value) -> None:
    """Adds guards on what inspect.signature() reads of a function, and of those that it wraps."""
    if not isinstance(value, FunctionValue) or value.attributes or value.original is not function:
        raise Break("inspect.signature() of a function with a wrapped object or attributes of this function")
    source = value.source
    own = source.attribute("__dict__")
    for name in ("__signature__", "__wrapped__", "_partialmethod"):
        if name not in function.__dict__:
            ex.guards.check(CHECK_MISSING, own, name)
            continue
        content = function.__dict__[name]
        ex.guards.check(CHECK_IS, own.then(DICT_ITEM, name), content)
        if name == "__wrapped__":
            _guard_signature(ex, content, ex.real(ex.wrap(content, constant(content))))
        return
    ex.check_defaults(value)
    for i, default in enumerate(function.__defaults__ or ()):
        ex.guards.check(CHECK_IS, source.then(FUNCTION_DEFAULTS).then(TUPLE_ITEM, None, i), default)
    for name, default in (function.__kwdefaults__ or {}).items():
        ex.guards.check(CHECK_IS, source.then(FUNCTION_KEYWORD_DEFAULTS).then(DICT_ITEM, name), default)
    annotations = source.attribute("__annotations__")
    ex.guards.check(CHECK_KEYS, annotations, tuple(function.__annotations__))
    for name, annotation in function.__annotations__.items():
        ex.guards.check(CHECK_IS, annotations.then(DICT_ITEM, name), annotation)


def signature(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """inspect.signature() of a function or method."""
    value = ex.real(args[0]) if args else None
    function = value.function if isinstance(value, MethodValue) else value
    if kwargs or len(args) != 1 or not isinstance(function, FunctionValue) or function.original is None:
        raise Break("inspect.signature() of something else than a function")
    obj = function.original if function is value else types.MethodType(function.original, object())
    found = inspect.signature(obj)
    _guard_signature(ex, function.original, function)
    return ex.wrap(found, Source(CONSTANT, None, found, is_static=True))


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
    elif "__doc__" not in wrapped.attributes:
        wrapper.attributes["__doc__"] = ex.real(ex.get_attribute(wrapped, "__doc__"))
    wrapper.attributes.update(wrapped.attributes)
    wrapper.attributes["__wrapped__"] = wrapped
    return wrapper


@handles(_assert)
def _assert_condition(ex, args, kwargs):
    return ex.call(ex.wrap_class_function(_assert_true), args, kwargs)
