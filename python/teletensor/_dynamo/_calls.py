"""Calls: functions in Python are executed in frames of their own, classes create values, tensor functions become nodes."""

from __future__ import annotations

import abc
import collections
import enum
import functools
import inspect
import itertools
import types
import warnings
from typing import Any

from .. import _C
from .._C import Tensor
from ..nn import Module
from . import _marks
from ._attributes import MISSING, PACKAGE, is_python_class, lookup, raise_
from ._introspection import reason_to_run_plainly, sees_frames_of_callers
from ._numpy_numbers import is_function_of_numbers
from ._source import CALL, CHECK_IS, CHECK_LENGTH, DICT_ITEM, constant
from ._tensors import MODE_FUNCTIONS, MODE_QUERIES, has_size_by_values, is_graph_function
from ._transforms import KeptFunction, TransformValue
from ._values import (
    Break,
    BuiltinMethod,
    BuiltValue,
    Constant,
    DictValue,
    ExceptionValue,
    FunctionValue,
    GeneratorValue,
    MethodValue,
    NeedsFrame,
    ObjectValue,
    Opaque,
    PartialValue,
    SequenceValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._wrap import is_namedtuple, is_plain_namedtuple

_MAX_DEPTH = 40
_dispatcher = functools.singledispatch(lambda _: None)
_DISPATCH = (_dispatcher.__code__, _dispatcher.dispatch.__code__)

# Classes of which objects of subclasses may be made, beside dict.
CONTAINERS = (list, tuple, set, frozenset)
_FILLING = (dict.__init__, collections.OrderedDict.__init__, list.__init__, set.__init__)


class Calls:
    """A part of Executor."""

    depth = 0

    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The result of function(*args, **kwargs)."""
        function = self.real(function)
        if isinstance(function, FunctionValue):
            return self.call_function(function, args, kwargs)
        if isinstance(function, MethodValue):
            if isinstance(function.function, FunctionValue):
                self.check_callable(function.function)
            return self.call(function.function, [function.self, *args], kwargs)
        if isinstance(function, BuiltinMethod):
            return self.call_method(function.self, function.name, args, kwargs)
        if isinstance(function, Constant):
            return self.call_constant(function.value, args, kwargs)
        if isinstance(function, PartialValue):
            return self.call(function.function, [*function.args, *args], {**function.kwargs, **kwargs})
        if isinstance(function, BuiltValue):
            return function.call(self, function, args, kwargs)
        if isinstance(function, TransformValue):
            return self.call_transform(function, args, kwargs)
        if isinstance(function, KeptFunction):
            return self.call_kept(function, args, kwargs)
        if isinstance(function, ObjectValue) and function.cls is functools._lru_cache_wrapper:
            return self.call_cached(function, args, kwargs)
        if isinstance(function, ObjectValue):
            found = self.class_attribute(function.cls, "__call__")
            if isinstance(found, types.FunctionType):
                if isinstance(function.original, Module):
                    self.check_callable(function)
                return self.call(self.wrap_class_function(found), [function, *args], kwargs)
            if found is MISSING:
                return raise_(TypeError, f"'{function.cls.__name__}' object is not callable")
        if isinstance(function, Opaque):
            return self._call_opaque(function, args, kwargs)
        raise Break(f"a call of a {kind(function)}")

    def _call_opaque(self, function: Opaque, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a function of NumPy with numbers."""
        if self.numpy is not None and is_function_of_numbers(function.obj):
            return self.call_numpy(function, args, kwargs)
        raise Break(f"a call of a {kind(function)}")

    def call_cached(self, function: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a function with functools.cache: that of its cache, with a guard, for constants; else its body is executed."""
        self.guards.check(CHECK_IS, function.source, function.original)
        if not any(isinstance(leaf, TensorValue) for v in [*args, *kwargs.values()] for leaf in self.leaves(v)):
            objects = [self._key_of_cache(v) for v in args]
            keywords = {name: self._key_of_cache(v) for name, v in kwargs.items()}
            if self.globals or self.classes or any(v.source is not None for v in self.written.values()):
                raise Break("a call of a function with a cache, which may read what was written before")
            call = functools.partial(function.original, *objects, **keywords)
            try:
                with _C.TracePause():  # tensors that it makes have values
                    found = call()
            except Exception as e:  # noqa: BLE001 - the user's exception
                raise Break(f"a function with a cache raises {type(e).__name__}") from None
            return self.wrap(found, constant(call).then(CALL))
        wrapped = function.original.__wrapped__
        return self.call(self.wrap(wrapped, constant(wrapped)), args, kwargs)

    def _key_of_cache(self, value: Value) -> Any:
        """The object that a cached function receives: immutable, or an existing one, with a guard on its identity."""
        value = self.plain(self.real(value))
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return tuple(self._key_of_cache(item) for item in value.items)
        original = getattr(value, "original", None)
        if original is None or value.source is None:
            raise Break("a call of a function with a cache with an object that the function makes")
        self.guards.check(CHECK_IS, value.source, original)
        return original

    def check_callable(self, function: Value) -> None:
        """Ends the graph if the function is marked as one that is not compiled."""
        original = getattr(function, "original", None)
        reason = None if original is None else _marks.reason_not_to_compile(original)
        if reason:
            raise Break(reason)

    def call_function(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a function in Python."""
        original = function.original
        if original is not None:
            self.check_callable(function)
            found = self.special_function(original, args, kwargs)
            if found is not None:
                return found
            if is_graph_function(original):
                return self.call_in_graph("call_function", original, args, kwargs)
            found = self.control_flow(original, args, kwargs)
            if found is not None:
                return found
            handler = self.handlers_of_functions.get(original)
            if handler is not None:
                return handler(self, args, kwargs)
            if original.__code__ in _DISPATCH:
                return self._dispatched(function, args, kwargs)
            if original.__name__ == "_find" and original.__module__.endswith(".distributions._kl_registry"):
                return self._divergence(original, args)
            replacement = _marks.inner_function(original)
            if replacement is not None:
                return self.call(self.wrap(replacement, constant(replacement)), args, kwargs)
        found = self.transform_of(function, args, kwargs)
        return self.inline(function, args, kwargs) if found is None else found

    def _dispatched(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a functools.singledispatch function, or of its dispatch(cls)."""
        original = function.original
        is_call = original.__code__ is _DISPATCH[0]
        dispatch = original.dispatch if is_call else original
        cls = self.real(args[0]) if args else None
        if cls is None or not is_call and not (isinstance(cls, Constant) and isinstance(cls.value, type)):
            raise Break(f"{function.qualname}() gets wrong arguments")
        of = cls.cls if is_call else cls.value
        self.guards.check(CHECK_IS, function.source, original)
        found = functools.partial(dispatch, of)
        implementation = self.wrap(found(), constant(found).then(CALL))
        self.guards.check(CHECK_IS, constant(found).then(CALL), found())
        return self.call(implementation, args, kwargs) if is_call else implementation

    def _divergence(self, find: types.FunctionType, args: list[Value]) -> Value:
        """The function that kl_divergence() calls for two classes, with guards on the table of such functions."""
        classes = [self.python_value(self.real(a)) for a in args]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = find(*classes)
        if caught:
            raise Break("kl_divergence() of ambiguous classes, which warns")
        table = find.__globals__["_KL_REGISTRY"]
        self.guards.check(CHECK_LENGTH, constant(table), None, len(table))
        if found is None:
            return Constant(None)
        key = next(pair for pair in itertools.product(*(cls.__mro__ for cls in classes)) if table.get(pair) is found)
        return self.wrap(found, constant(table).then(DICT_ITEM, key))

    def inline(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Executes the body of a function."""
        flags = function.code.co_flags
        if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE):
            raise Break("a coroutine")
        reason = reason_to_run_plainly(function.code, function.globals)
        if reason:
            needs = sees_frames_of_callers(function.code)
            raise (NeedsFrame if needs else Break)(f"{function.name} runs as plain Python: {reason}")
        if self.depth >= _MAX_DEPTH:
            raise Break("too many nested calls")
        bound = self.bind_arguments(function, args, kwargs)
        frame = self.new_frame(function, bound)
        if flags & inspect.CO_GENERATOR:
            generator = GeneratorValue(frame)
            self.generators.append(generator)
            return generator
        self.depth += 1
        try:
            return frame.run()
        except Break as e:
            if not e.where and not frame.code.co_filename.startswith(PACKAGE):
                e.where = f"{frame.code.co_filename}:{frame.line} in {frame.code.co_name}"
            raise
        finally:
            self.depth -= 1

    def bind_arguments(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
        """The parameters' values; raises Raised(TypeError) as a call does."""
        code, name = function.code, function.qualname
        count, names = code.co_argcount, code.co_varnames
        if len(args) < count or code.co_kwonlyargcount:
            self.check_defaults(function)
        bound = dict(zip(names[:count], args))
        extra = args[count:]
        position = count + code.co_kwonlyargcount
        if code.co_flags & inspect.CO_VARARGS:
            bound[names[position]] = SequenceValue(list(extra), tuple)
            position += 1
        elif extra:
            given = f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
            least = count - len(function.defaults)
            takes = f"{count} positional argument{'s' * (count != 1)}"
            if function.defaults:
                takes = f"from {least} to {count} positional arguments"
            if any(k in names[count : count + code.co_kwonlyargcount] for k in kwargs):
                raise Break(f"{name}() gets too many arguments")
            return raise_(TypeError, f"{name}() takes {takes} but {given}")
        rest: dict[str, Value] = {}
        for key, value in kwargs.items():
            if key in names[code.co_posonlyargcount : count + code.co_kwonlyargcount]:
                if key in bound:
                    return raise_(TypeError, f"{name}() got multiple values for argument '{key}'")
                bound[key] = value
            else:
                rest[key] = value
        if code.co_flags & inspect.CO_VARKEYWORDS:
            bound[names[position]] = DictValue({k: (Constant(k), v) for k, v in rest.items()})
        elif rest:
            return raise_(TypeError, f"{name}() got an unexpected keyword argument '{next(iter(rest))}'")
        first_default = count - len(function.defaults)
        missing = []
        for i, parameter in enumerate(names[:count]):
            if parameter in bound:
                continue
            if i < first_default:
                missing.append(parameter)
            else:
                bound[parameter] = function.defaults[i - first_default]
        for parameter in names[count : count + code.co_kwonlyargcount]:
            if parameter not in bound and parameter in function.keyword_defaults:
                bound[parameter] = function.keyword_defaults[parameter]
            elif parameter not in bound:
                missing.append(parameter)
        if missing:
            raise Break(f"{name}() misses arguments")  # the call raises its message
        return bound

    def call_constant(self, f: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a class, of a function in C, or of a function that is known by what it does."""
        if isinstance(f, type):
            return self.create(f, args, kwargs)
        if f is type.__call__ and args and isinstance(cls := self.real(args[0]), Constant) and isinstance(cls.value, type):
            if cls.value in self.constructors:
                return self.create(cls.value, args[1:], kwargs)
            return self._create_plain(cls.value, args[1:], kwargs)
        if f in MODE_FUNCTIONS:
            return self.set_mode(f, args)
        if f in MODE_QUERIES:
            values = [self.real(a) for a in args]
            if all(isinstance(v, Constant) for v in values):
                if f is _C.autocast_fast_dtype:
                    self.guard_fast_dtype(values[0].value)
                return self.constant_value(f(*(v.value for v in values)))
        if has_size_by_values(f) and (found := self.call_of_dynamic_shape("call_function", f, args, kwargs)) is not None:
            return found
        if is_graph_function(f):
            return self.call_in_graph("call_function", f, args, kwargs)
        try:
            handler = self.handlers.get(f) or self.handlers_of_functions.get(getattr(f, "__wrapped__", None))
        except TypeError:
            raise Break(f"a call of a {kind(f)}") from None
        if handler is not None:
            return handler(self, args, kwargs)
        owner = getattr(f, "__objclass__", None)
        qualname = getattr(f, "__qualname__", "")
        if args and (owner is Tensor or qualname.startswith("Tensor.") and type(f).__module__.startswith("teletensor")):
            tensor = self.real(args[0])
            name = f.__name__.rpartition(".")[2]
            if isinstance(tensor, TensorValue):
                return self.call_tensor_method(tensor, name, args[1:], kwargs)
            raise Break(f"Tensor.{name} of a {kind(tensor)}")
        if owner is not None and args:
            first = self.real(args[0])
            return self.call_method(first, f.__name__, args[1:], kwargs, owner)
        if isinstance(f, types.BuiltinFunctionType) and isinstance(f.__self__, type):
            return self.call_method(self.type_constant(f.__self__), f.__name__, args, kwargs)
        raise Break(f"a call of {getattr(f, '__qualname__', None) or f!r}")

    # -- classes

    def create(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls(*args, **kwargs)"""
        handler = self.constructors.get(cls)
        if handler is not None:
            return handler(self, args, kwargs)
        if type(cls) not in (type, abc.ABCMeta) and not isinstance(cls, enum.EnumMeta):
            found = self.class_attribute(type(cls), "__call__")
            if found is not type.__call__ and (not isinstance(found, types.FunctionType) or issubclass(cls, (Tensor, Module))):
                raise Break(f"the class {cls.__name__} has a metaclass")
            if found is not type.__call__:
                return self.call(self.wrap_class_function(found), [self.type_constant(cls), *args], kwargs)
        return self._create_plain(cls, args, kwargs)

    def _create_plain(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """type.__call__(cls, *args, **kwargs)"""
        if issubclass(cls, BaseException):
            return self._create_exception(cls, args, kwargs)
        if self.numpy is not None and issubclass(cls, (self.numpy.number, self.numpy.bool_)) and args and not kwargs:
            values = [self.real(a) for a in args]
            if all(isinstance(v, Constant) and isinstance(v.value, (int, float, complex, self.numpy.number)) for v in values):
                return Constant(cls(*(v.value for v in values)))
        if isinstance(cls, enum.EnumMeta):
            value = self.real(args[0]) if len(args) == 1 and not kwargs else None
            if not isinstance(value, Constant):
                raise Break("an Enum is created")
            try:
                return Constant(cls(value.value))
            except ValueError as e:
                return raise_(ValueError, str(e))
        if is_namedtuple(cls):
            if not is_plain_namedtuple(cls):
                raise Break(f"a {cls.__name__} with special methods is created")
            return self._create_namedtuple(cls, args, kwargs)
        if issubclass(cls, Tensor) or cls is Module:
            raise Break(f"a {cls.__name__} is created")
        if cls.__module__.startswith("teletensor.autograd.function"):
            raise Break("autograd.Function")
        if not is_python_class(cls) or any(
            not is_python_class(base) and base not in (object, dict, collections.OrderedDict, *CONTAINERS) for base in cls.__mro__
        ):
            raise Break(f"a {cls.__name__} is created")
        new = self.class_attribute(cls, "__new__")
        if issubclass(cls, dict) and new in (dict.__new__, collections.OrderedDict.__new__):
            value: Value = ObjectValue(cls)
            value.entries = DictValue({}, dict)
        elif (base := next((b for b in CONTAINERS if issubclass(cls, b)), None)) is not None and new is base.__new__:
            self._check_finalizer(cls)
            value = ObjectValue(cls)
            is_filled = base in (tuple, frozenset)  # by __new__()
            if is_filled and (kwargs or len(args) > 1):
                raise Break(f"{cls.__name__}() gets wrong arguments")
            value.entries = self.real(self.constructors[base](self, args if is_filled else [], {}))
        elif new is object.__new__ or new is MISSING or isinstance(new, types.BuiltinFunctionType) and new is object.__new__:
            if getattr(cls, "__abstractmethods__", None):
                raise Break("an abstract class")
            self._check_finalizer(cls)
            value = ObjectValue(cls)
            if lookup(cls, "__init__") is object.__init__ and (args or kwargs):
                return raise_(TypeError, f"{cls.__name__}() takes no arguments")
        else:
            function = new.__func__ if isinstance(new, staticmethod) else new
            if not isinstance(function, types.FunctionType):
                raise Break(f"{cls.__name__}.__new__")
            value = self.real(self.call(self.wrap_class_function(function), [self.type_constant(cls), *args], kwargs))
            if not isinstance(value, (ObjectValue, SequenceValue)) or not issubclass(value.cls, cls):
                return value
        init = self.class_attribute(cls, "__init__")
        if isinstance(init, types.FunctionType):
            result = self.real(self.call(self.wrap_class_function(init), [value, *args], kwargs))
            if not (isinstance(result, Constant) and result.value is None):
                return raise_(TypeError, f"__init__() should return None, not '{result.cls.__name__}'")
        elif getattr(value, "entries", None) is not None and init in _FILLING:
            self.call_method(value, "__init__", args, kwargs)
        elif init is not object.__init__:
            raise Break(f"{cls.__name__}.__init__")
        return value

    def _check_finalizer(self, cls: type) -> None:
        """Ends the graph where an object is created whose end has effects."""
        if self.class_attribute(cls, "__del__") is not MISSING:
            raise Break(f"a {cls.__name__}, which has __del__(), is created")

    def _create_exception(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.class_attribute(cls, "__new__") not in (BaseException.__new__, Exception.__new__) and is_python_class(cls):
            new = lookup(cls, "__new__")
            if not isinstance(new, types.BuiltinFunctionType):
                raise Break(f"{cls.__name__}.__new__")
        if not is_python_class(cls) and (kwargs or issubclass(cls, (OSError, UnicodeError, ImportError, SyntaxError))):
            raise Break(f"a {cls.__name__} is created")
        value = ExceptionValue(cls, list(args))
        init = self.class_attribute(cls, "__init__")
        if isinstance(init, types.FunctionType):
            self.call(self.wrap_class_function(init), [value, *args], kwargs)
        elif kwargs:
            return raise_(TypeError, f"{cls.__name__}() takes no keyword arguments")
        return value

    def _create_namedtuple(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        items = dict(zip(cls._fields, args))
        if len(args) > len(cls._fields) or any(k not in cls._fields or k in items for k in kwargs):
            raise Break(f"{cls.__name__}() gets wrong arguments")
        items.update(kwargs)
        made = getattr(self.class_attribute(cls, "__new__"), "__func__", None)
        if not isinstance(made, types.FunctionType) or not made.__globals__["__name__"].startswith("namedtuple_"):
            raise Break(f"{cls.__name__}.__new__")
        if len(items) < len(cls._fields):
            function = self.wrap_class_function(made)
            self.check_defaults(function)
            items = {**dict(zip(reversed(cls._fields), reversed(function.defaults))), **items}
            if len(items) < len(cls._fields):
                raise Break(f"{cls.__name__}() misses arguments")
        return SequenceValue([items[name] for name in cls._fields], cls)

    def call_method_named(self, value: Value, name: str, args: list[Value]) -> Value | None:
        """The result of a special method that the value's class defines; None if it has none."""
        value = self.real(value)
        if not isinstance(value, (ObjectValue, ExceptionValue)):
            return None
        found = self.class_attribute(value.cls, name)
        if found is MISSING or found is None:
            return None
        if not isinstance(found, types.FunctionType):
            if getattr(found, "__objclass__", None) is object or isinstance(found, types.BuiltinFunctionType):
                return None
            if getattr(value, "entries", None) is not None and found.__objclass__ in CONTAINERS:
                return self.call_method(value, name, args, {})
            raise Break(f"{value.cls.__name__}.{name}")
        return self.call(self.wrap_class_function(found), [value, *args], {})
