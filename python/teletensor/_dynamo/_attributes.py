"""Attributes of values: reading them. Writing and deleting them: _attribute_writes.py."""

from __future__ import annotations

import collections
import contextvars
import dis
import enum
import functools
import os
import re
import sys
import threading
import types
from typing import Any

from .. import ops
from .._C import Tensor
from .._library.operators import OpOverloadPacket
from ..nn import Module
from ._entries import STDLIB as STDLIB
from ._source import (
    CALL,
    CHECK_IS,
    CHECK_MISSING,
    CHECK_NO_DICT,
    CHECK_TYPE_MISSING,
    DICT_ITEM,
    FUNCTION_DEFAULTS,
    FUNCTION_KEYWORD_DEFAULTS,
    INSTANCE_DICT,
    TUPLE_ITEM,
    TYPE_ATTRIBUTE,
    constant,
)
from ._values import (
    DELETED,
    Break,
    BuiltinMethod,
    CellValue,
    Constant,
    DequeValue,
    DictValue,
    DictView,
    ExceptionValue,
    FunctionValue,
    GeneratorValue,
    HandleValue,
    IteratorValue,
    Lazy,
    MatchValue,
    MethodValue,
    ObjectValue,
    Opaque,
    PartialValue,
    Raised,
    SequenceValue,
    SetValue,
    SliceValue,
    SuperValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._warning_filters import Block
from ._wrap import EQUAL_TYPES, is_namedtuple, is_structseq

MISSING = object()
_UNREAD = object()
MODULE_HOOKS = {name: vars(Module)[name] for name in ("__getattr__", "__setattr__", "__delattr__")}  # unless the user replaces them
_METHODS_IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType)
_PLAIN_GETTERS = tuple(
    c.__getattribute__ for c in (object, dict, collections.OrderedDict, list, tuple, set, frozenset, types.SimpleNamespace)
)
_TYPE_ATTRIBUTES = frozenset(("__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__doc__", "__base__"))


def lookup(cls: type, name: str) -> Any:
    """What a class or its bases define under a name; MISSING if nothing."""
    for base in cls.__mro__:
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def is_python_class(cls: type) -> bool:
    """Whether a class was defined in Python, so that its attributes may change."""
    return bool(cls.__flags__ & 1 << 9)


def raise_(cls: type, *args: Any) -> Any:
    """Raises an exception of the function that is executed."""
    raise Raised(ExceptionValue(cls, [Constant(a) for a in args]))


PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


def _imports(code: types.CodeType) -> bool:
    """Whether a function imports modules, as `__getattr__` of modules that are imported at their first use does."""
    return "import_module" in code.co_names or any(i.opname == "IMPORT_NAME" for i in dis.get_instructions(code))


class Attributes:
    """A part of Executor.

    Attributes:
        class_attributes: what classes define, with guards, by class and name.
    """

    class_attributes: dict[tuple[type, str], Any]

    def class_attribute(self, cls: type, name: str) -> Any:
        """What a class defines under a name, with a guard."""
        if self.classes and self._is_written(cls, name):
            raise Break(f"{cls.__name__}.{name}, which the function has written")
        key = cls, name
        found = self.class_attributes.get(key, _UNREAD)
        if found is not _UNREAD:
            return found
        found = self.class_attributes[key] = lookup(cls, name)
        if is_python_class(cls):
            if found is MISSING:
                self.guards.check(CHECK_TYPE_MISSING, constant(cls), name)
            else:
                self.guards.check(CHECK_IS, constant(cls).then(TYPE_ATTRIBUTE, name), found)
        return found

    def has_python_method(self, cls: type, name: str) -> bool:
        """Whether a class defines a method in Python, with a guard."""
        return isinstance(self.class_attribute(cls, name), types.FunctionType)

    def _is_written(self, cls: type, name: str) -> bool:
        return self.written_attribute(cls, name) is not None

    def written_attribute(self, cls: type, name: str) -> Value | None:
        """What the function has written to an attribute of a class; None if nothing."""
        for base in cls.__mro__:
            found = self.classes.get(base, {}).get(name)
            if found is not None or name in vars(base):
                return found
        return None

    def get_attribute(self, value: Value, name: str) -> Value:
        """value.name; raises Raised(AttributeError) if there is none."""
        value = self.real(value)
        if type(value) is ObjectValue:
            return self.object_attribute(value, name)
        value = self.plain(value)
        if isinstance(value, TensorValue):
            return self.tensor_attribute(value, name)
        if isinstance(value, ObjectValue):
            return self.object_attribute(value, name)
        if isinstance(value, Constant):
            return self.constant_attribute(value, name)
        if name == "__class__" and not isinstance(value, (Opaque, IteratorValue)):
            return self.type_constant(value.cls)
        if isinstance(value, SuperValue):
            return self.super_attribute(value, name)
        if isinstance(value, FunctionValue):
            return self.function_attribute(value, name)
        if isinstance(value, MethodValue):
            if name == "__self__":
                return value.self
            if name == "__func__":
                return value.function
            return self.get_attribute(value.function, name)
        if isinstance(value, ExceptionValue):
            return self.exception_attribute(value, name)
        if isinstance(value, PartialValue) and name in ("func", "args", "keywords"):
            if name == "func":
                return value.function
            if name == "args":
                return SequenceValue(list(value.args), tuple)
            return DictValue({k: (Constant(k), v) for k, v in value.kwargs.items()})
        if isinstance(value, SequenceValue) and value.cls not in (list, tuple):
            return self.tuple_attribute(value, name)
        if isinstance(value, HandleValue):
            return BuiltinMethod(value, name)
        if isinstance(value, SliceValue) and name in ("start", "stop", "step"):
            return value.parts[("start", "stop", "step").index(name)]
        if isinstance(value, CellValue) and name == "cell_contents":
            return value.content if value.content is not None else raise_(ValueError, "Cell is empty")
        if isinstance(value, (IteratorValue, GeneratorValue)):
            if name in ("__next__", "__iter__", "send", "throw", "close"):
                return BuiltinMethod(value, name)
            raise Break(f"{name} of an iterator")
        if isinstance(value, BuiltinMethod):
            if name == "__name__":
                return Constant(value.name)
            if name == "__self__":
                return value.self
        if isinstance(value, MatchValue):
            return self.attribute_of_match(value, name) or BuiltinMethod(value, name)
        if isinstance(value, DequeValue) and name == "maxlen":
            return Constant(value.maxlen)
        if isinstance(value, (SequenceValue, DictValue, SetValue, DequeValue, PartialValue)):
            found = lookup(value.cls, name)
            if found is MISSING:
                if isinstance(value, PartialValue):
                    self.check_no_attributes(value)
                return raise_(AttributeError, f"'{value.cls.__name__}' object has no attribute '{name}'")
            if isinstance(found, _METHODS_IN_C):
                return BuiltinMethod(value, name)
            if type(found) in EQUAL_TYPES:
                return Constant(found)
        if isinstance(value, DictView) and value.is_set and name == "isdisjoint":
            return BuiltinMethod(value, name)
        if isinstance(value, Opaque) and type(value.obj) is contextvars.ContextVar and name == "get":
            return BuiltinMethod(value, name)
        raise Break(f"attribute {name} of a {kind(value)}")

    def check_no_attributes(self, value: PartialValue) -> None:
        """Adds a guard: nothing has set an attribute of the partial."""
        if value.source is not None:
            state = value.source.attribute("__reduce__").then(CALL).then(TUPLE_ITEM, None, 2)
            self.guards.check(CHECK_IS, state.then(TUPLE_ITEM, None, 3), None)

    def tuple_attribute(self, value: SequenceValue, name: str) -> Value:
        """An attribute of a named tuple, of a Size or of several named results."""
        cls = value.cls
        if is_namedtuple(cls) and name in cls._fields and type(self.class_attribute(cls, name)).__name__ == "_tuplegetter":
            return value.items[cls._fields.index(name)]
        if is_structseq(cls):
            for i in range(len(value.items)):
                if getattr(cls, name, None) is not None and self._structseq_index(cls, name) == i:
                    return value.items[i]
        found = self.class_attribute(cls, name)
        if is_namedtuple(cls) and name in ("_replace", "_asdict") and getattr(found, "__module__", "") == "collections":
            return BuiltinMethod(value, name)
        if isinstance(found, types.FunctionType):
            return MethodValue(self.wrap_class_function(found), value)
        if isinstance(found, property):
            return self.call(self.wrap(found.fget, constant(found.fget)), [value], {})
        if isinstance(found, classmethod):
            return MethodValue(self.wrap(found.__func__, constant(found.__func__)), self.type_constant(cls))
        if isinstance(found, staticmethod):
            return self.wrap(found.__func__, constant(found.__func__))
        if found is MISSING:
            return raise_(AttributeError, f"'{cls.__name__}' object has no attribute '{name}'")
        if isinstance(found, _METHODS_IN_C):
            return BuiltinMethod(value, name)
        if type(found) in EQUAL_TYPES or isinstance(found, tuple):
            return self.wrap(found, constant(cls).then(TYPE_ATTRIBUTE, name))
        raise Break(f"attribute {name} of a {cls.__name__}")

    @staticmethod
    def _structseq_index(cls: type, name: str) -> int:
        probe = cls(range(cls.n_sequence_fields))
        found = getattr(probe, name, None)
        return found if isinstance(found, int) else -1

    def wrap_class_function(self, function: types.FunctionType) -> Value:
        """The value of a function that a class defines."""
        if id(function) not in self.by_id:
            self.by_id[id(function)] = self.wrap_function(function, constant(function), is_stable=True)
            self.keep.append(function)
        return self.by_id[id(function)]

    def object_attribute(self, value: ObjectValue, name: str) -> Value:
        """An attribute of an object of a class in Python."""
        if value.cls is Block and name not in ("options", "__enter__", "__exit__"):
            raise Break(f"attribute {name} of a catch_warnings object")
        found = self.class_attribute(value.cls, "__getattribute__")
        if found is threading.local.__getattribute__:
            return self._thread_local_attribute(value, name)
        if found in _PLAIN_GETTERS:
            return self.plain_attribute(value, name)
        if not isinstance(found, types.FunctionType):
            raise Break(f"{value.cls.__name__}.__getattribute__")
        try:
            return self.call(self.wrap_class_function(found), [value, Constant(name)], {})
        except Raised as e:
            if not issubclass(e.value.cls, AttributeError) or lookup(value.cls, "__getattr__") is MISSING:
                raise
        return self._missing_attribute(value, name)

    def _thread_local_attribute(self, value: ObjectValue, name: str) -> Value:
        """An attribute of a threading.local: an entry of the `__dict__` that it has in this thread."""
        if value.original is None or name == "__dict__" or self.class_attribute(value.cls, name) is not MISSING:
            raise Break(f"{value.cls.__name__}.{name} of a threading.local")
        if name in value.attributes:
            return value.attributes[name]
        own, content = value.source.attribute("__dict__"), value.original.__dict__
        if name in content:
            return self.wrap(content[name], own.then(DICT_ITEM, name))
        self.guards.check(CHECK_MISSING, own, name)
        cls = "_thread._local" if value.cls is threading.local else value.cls.__name__
        return raise_(AttributeError, f"'{cls}' object has no attribute '{name}'")

    def plain_attribute(self, value: ObjectValue, name: str, has_hook: bool = True) -> Value:
        """An attribute as object.__getattribute__ finds it; then as __getattr__ does if `has_hook`."""
        cls = value.cls
        if name == "__class__":
            return self.type_constant(cls)
        self.check_stepped(value, name)
        if self.classes and (written := self.written_attribute(cls, name)) is not None:
            return self.instance_attribute(value, name) or written
        found = self.class_attribute(cls, name)
        if isinstance(found, property):
            self.check_accessor(found.fget)
            if found.fget is None:
                return raise_(AttributeError, f"property '{name}' of '{cls.__name__}' object has no getter")
            try:
                return self.call(self.wrap(found.fget, constant(found.fget)), [value], {})
            except Raised as e:
                if not has_hook or not issubclass(e.value.cls, AttributeError) or lookup(cls, "__getattr__") is MISSING:
                    raise
            return self._missing_attribute(value, name)
        if isinstance(found, types.MemberDescriptorType):
            if name == "__dict__":  # of types.SimpleNamespace
                return self._dict_of(value)
            return self._slot(value, name, found)
        if isinstance(found, types.GetSetDescriptorType):
            if name == "__dict__":
                return self._dict_of(value)
            if name in ("shape", "dtype", "device", "ndim") and isinstance(value.original, Tensor):  # a quantized weight
                return self.wrap(getattr(value.original, name), value.source.attribute(name))
            raise Break(f"attribute {name} of a {cls.__name__}")
        getter = MISSING if found is MISSING else self.class_attribute(type(found), "__get__")
        is_data = found is not MISSING and self.is_data_descriptor(type(found))
        if not is_data:
            own = self.instance_attribute(value, name)
            if own is not None:
                return own
        if found is MISSING:
            if not has_hook:
                return raise_(AttributeError, f"'{cls.__name__}' object has no attribute '{name}'")
            return self._missing_attribute(value, name)
        return self.bind(found, value, cls, name, getter)

    def is_data_descriptor(self, cls: type) -> bool:
        """Whether attributes of the class precede those of the instance, with guards."""
        return any(self.class_attribute(cls, name) is not MISSING for name in ("__set__", "__delete__"))

    @staticmethod
    def check_accessor(accessor: Any) -> None:
        if accessor is not None and not isinstance(accessor, types.FunctionType):
            raise Break("a property whose accessor is not a function in Python")

    def bind(self, found: Any, value: Value, cls: type, name: str, getter: Any) -> Value:
        """Binds an attribute that was found in the class to the value, as Python does: a function becomes a method."""
        if isinstance(found, types.FunctionType):
            return MethodValue(self.wrap_class_function(found), value)
        if isinstance(found, staticmethod):
            return self.wrap(found.__func__, constant(found.__func__))
        if isinstance(found, classmethod):
            return MethodValue(self.wrap(found.__func__, constant(found.__func__)), self.type_constant(cls))
        if isinstance(found, _METHODS_IN_C):
            if isinstance(found, types.BuiltinFunctionType):
                return Constant(found)
            return BuiltinMethod(value, name)
        if type(found) is functools.partialmethod and isinstance(found.func, types.FunctionType):
            at = constant(found)
            args, keywords = self.wrap(found.args, at.attribute("args")), self.wrap(found.keywords, at.attribute("keywords"))
            method = MethodValue(self.wrap_class_function(found.func), value)
            return PartialValue(method, list(args.items), {k: v for k, (_, v) in keywords.items.items()})
        if type(found) is functools._lru_cache_wrapper:
            return MethodValue(self.wrap(found, constant(found)), value)
        if type(found) is functools.cached_property and isinstance(value, ObjectValue):
            return self._cached(found, value)
        if getter is not MISSING:
            if isinstance(getter, types.FunctionType):
                descriptor = self.wrap(found, constant(found))
                return self.call(self.wrap_class_function(getter), [descriptor, value, self.type_constant(cls)], {})
            raise Break(f"a descriptor of the class {kind(found)}")
        return self.wrap(found, constant(cls).then(TYPE_ATTRIBUTE, name))

    def _cached(self, found: functools.cached_property, value: ObjectValue) -> Value:
        """A functools.cached_property that the object's __dict__ lacks."""
        if found.attrname is None or not value.cls.__dictoffset__:
            raise Break("a cached_property without a name, or of an object without __dict__")
        result = self.call(self.wrap(found.func, constant(found.func)), [value], {})
        self._write_instance(value, found.attrname, result)
        return result

    def _slot(self, value: ObjectValue, name: str, found: Any) -> Value:
        if name in value.slots:
            if value.slots[name] is DELETED:
                raise Break("a slot is deleted")
            return value.slots[name]
        if value.original is None:
            return raise_(AttributeError, f"'{value.cls.__name__}' object has no attribute '{name}'")
        try:
            content = found.__get__(value.original)
        except AttributeError:
            raise Break("a slot without a value") from None
        return self.wrap(content, value.source.attribute(name))

    def _dict_of(self, value: ObjectValue) -> DictValue:
        """`__dict__` of an object, which can only be read."""
        if value.instance_dict is None:
            if value.original is None:
                held = {k: (Constant(k), v) for k, v in value.attributes.items() if v is not DELETED}
                value.instance_dict = DictValue(held)
                value.instance_dict.owner = value
            elif type(vars(value.original)) is not dict:
                raise Break(f"__dict__ of a {value.cls.__name__}")
            else:
                found = self.wrap(vars(value.original), value.source.then(INSTANCE_DICT))
                if not isinstance(found, DictValue) or value.moved:
                    raise Break(f"__dict__ of a {value.cls.__name__}")
                value.instance_dict = found
                for name, new in value.attributes.items():  # which the function has written before
                    found.items.pop(name, None) if new is DELETED else found.items.update({name: (Constant(name), new)})
            value.instance_dict.is_of_object = value.original is not None
        return value.instance_dict

    def instance_attribute(self, value: ObjectValue, name: str) -> Value | None:
        """An entry of the object's __dict__; None if there is none."""
        if name in value.attributes:
            found = value.attributes[name]
            return None if found is DELETED else found
        if value.original is None:
            return None
        own = getattr(value.original, "__dict__", None)
        if not isinstance(own, dict):
            self.guards.check(CHECK_NO_DICT, value.source)
            return None
        if name in own:
            return self.wrap(own[name], value.source_of_dict.then(DICT_ITEM, name))
        self.guards.check(CHECK_MISSING, value.source_of_dict, name)
        return None

    def _missing_attribute(self, value: ObjectValue, name: str) -> Value:
        hook = self.class_attribute(value.cls, "__getattr__")
        if hook is MISSING:
            return raise_(AttributeError, f"'{value.cls.__name__}' object has no attribute '{name}'")
        if hook is MODULE_HOOKS["__getattr__"] and value.original is not None:
            found = self.module_member(value, name)
            return found if found is not None else raise_(AttributeError, f"'{value.cls.__name__}' object has no attribute '{name}'")
        if isinstance(hook, types.WrapperDescriptorType | types.MethodDescriptorType) and hook.__objclass__ is dict:
            return self.call_method(value, hook.__name__, [Constant(name)], {})  # __getattr__ = dict.__getitem__
        if not isinstance(hook, types.FunctionType):
            raise Break("__getattr__ that is not a function in Python")
        return self.call(self.wrap_class_function(hook), [value, Constant(name)], {})

    def module_member(self, value: ObjectValue, name: str) -> Value | None:
        """A parameter, buffer or submodule."""
        for registry in ("_parameters", "_buffers", "_modules"):
            if value.original is None or registry in value.attributes:
                raise Break("a Module that the function has changed")
            entries = vars(value.original).get(registry)
            if not isinstance(entries, dict):
                raise Break("a Module without registries")
            known = self.by_id.get(id(entries))
            if known is not None:
                if name in known.items:
                    return self.real(known.items[name][1])
                continue
            source = value.source_of_dict.then(DICT_ITEM, registry)
            if name in entries:
                return self.wrap(entries[name], source.then(DICT_ITEM, name))
            self.guards.check(CHECK_MISSING, source, name)
        return None

    def super_attribute(self, value: SuperValue, name: str) -> Value:
        """An attribute of super(): the next definition after the owner's."""
        of = value.self.value if isinstance(value.self, Constant) and isinstance(value.self.value, type) else value.self.cls
        of = of if value.owner in of.__mro__ else type(of)  # in a metaclass
        mro = of.__mro__
        if any(name in names for names in self.classes.values()):
            raise Break(f"super().{name}, which the function has written")
        self.guards.check(CHECK_IS, constant(of).attribute("__mro__"), mro)
        for base in mro[mro.index(value.owner) + 1 :]:
            found = base.__dict__.get(name, MISSING)
            if found is MISSING:
                self.class_attribute(base, name)  # with a guard: it may define the name later
                continue
            if is_python_class(base):
                self.guards.check(CHECK_IS, constant(base).then(TYPE_ATTRIBUTE, name), found)
            if isinstance(found, property):
                self.check_accessor(found.fget)
                return self.call(self.wrap(found.fget, constant(found.fget)), [value.self], {})
            if isinstance(found, _METHODS_IN_C):
                if name == "__new__":
                    return Constant(found)
                return MethodValue(Constant(found), value.self)
            if isinstance(found, types.BuiltinFunctionType):
                return Constant(found)
            return self.bind(found, value.self, of, name, self.class_attribute(type(found), "__get__"))
        return raise_(AttributeError, f"'super' object has no attribute '{name}'")

    def function_attribute(self, value: FunctionValue, name: str) -> Value:
        """An attribute of a function."""
        if name in value.attributes:
            return value.attributes[name]
        if name in ("__name__", "__qualname__"):
            if value.original is not None:
                return self.wrap(getattr(value.original, name), value.source.attribute(name))
            return Constant(value.name if name == "__name__" else value.qualname)
        if name == "__code__":
            return Constant(value.code)
        if name == "__get__":
            return BuiltinMethod(value, name)
        if value.original is not None:
            if name in value.original.__dict__:
                return self.wrap(value.original.__dict__[name], value.source.attribute("__dict__").then(DICT_ITEM, name))
            if name in ("__module__", "__doc__"):
                return self.wrap(getattr(value.original, name), value.source.attribute(name))
            if name in ("__defaults__", "__kwdefaults__"):
                return self._defaults(value, name)
            if hasattr(types.FunctionType, name):
                raise Break(f"function.{name}")
            self.guards.check(CHECK_MISSING, value.source.attribute("__dict__"), name)
        elif name == "__doc__":
            text = value.code.co_consts[0] if value.code.co_consts else None
            return Constant(text if isinstance(text, str) else None)
        elif hasattr(types.FunctionType, name):
            raise Break(f"function.{name}")
        return raise_(AttributeError, f"'function' object has no attribute '{name}'")

    def _defaults(self, value: FunctionValue, name: str) -> Value:
        """`__defaults__` or `__kwdefaults__` of an existing function, which can only be read."""
        kind = FUNCTION_DEFAULTS if name == "__defaults__" else FUNCTION_KEYWORD_DEFAULTS
        found = self.wrap(getattr(value.original, name), value.source.then(kind))
        if isinstance(found, DictValue):
            found.is_of_object = True
        return found

    def handled_exception(self) -> Value | None:
        """The exception that is handled: sys.exc_info()[1]."""
        frame = self.frame
        while frame is not None:
            if frame.handled:
                return frame.handled[-1]
            frame = frame.caller
        self._check_callers()
        return None

    def _check_callers(self) -> None:
        """Adds a guard that the function's callers handle no exception, which is the context of others."""
        if self.handled_outside is not None:
            raise Break("the exception that a caller handles")
        self.guards.check(CHECK_IS, constant(sys.exc_info).then(CALL).then(TUPLE_ITEM, None, 1), None)

    def exception_attribute(self, value: ExceptionValue, name: str) -> Value:
        """An attribute of an exception."""
        if name in value.attributes:
            return value.attributes[name]
        if name == "args":
            return SequenceValue(list(value.args), tuple)
        if name == "value" and issubclass(value.cls, StopIteration):
            return value.args[0] if value.args else Constant(None)
        if name == "__cause__":
            return value.cause or Constant(None)
        if name == "__context__" and value.source is None:
            if value.context is None:
                self._check_callers()
            return value.context or Constant(None)
        if name in ("__context__", "__traceback__", "__suppress_context__", "__notes__", "add_note"):
            if name == "__suppress_context__":
                return Constant(value.suppresses)
            raise Break(f"exception.{name}")
        if name == "with_traceback":
            raise Break("with_traceback()")
        found = self.class_attribute(value.cls, name)
        if found is MISSING:
            return raise_(AttributeError, f"'{value.cls.__name__}' object has no attribute '{name}'")
        if isinstance(found, types.FunctionType):
            return MethodValue(self.wrap_class_function(found), value)
        if isinstance(found, property):
            return self.call(self.wrap(found.fget, constant(found.fget)), [value], {})
        if isinstance(found, _METHODS_IN_C):
            return BuiltinMethod(value, name)
        if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            raise Break(f"exception.{name}")
        return self.wrap(found, constant(value.cls).then(TYPE_ATTRIBUTE, name))

    def constant_attribute(self, value: Constant, name: str) -> Value:
        """An attribute of a class, a module of Python, or an immutable object."""
        obj = value.value
        if isinstance(obj, type):
            return self.attribute_of_class(obj, name)
        if isinstance(obj, types.ModuleType):
            return self.attribute_of_module(value, name)
        if isinstance(obj, (ops._Namespace, OpOverloadPacket)):
            try:
                found = getattr(obj, name)
            except AttributeError:  # an operator may be registered before the next call
                raise Break(f"{obj!r} has no operator or overload {name}") from None
            return self.wrap(found, (value.source or constant(obj)).attribute(name))
        if isinstance(obj, enum.Enum) and name in ("name", "value"):
            found = obj.name if name == "name" else obj.value
            if type(found) not in EQUAL_TYPES:
                raise Break("the value of an Enum that is not a number or string")
            if f"_{name}_" in vars(obj):
                return self.wrap(vars(obj)[f"_{name}_"], constant(obj).instance_item(f"_{name}_"))
            return Constant(found)
        if name == "__class__":
            return self.type_constant(type(obj))
        if isinstance(obj, enum.Enum):
            found = self.class_attribute(type(obj), name)
            if isinstance(found, types.FunctionType):
                return MethodValue(self.wrap_class_function(found), value)
            if type(found) is property:
                return self.call(self.wrap(found.fget, constant(found.fget)), [value], {})
            if name in vars(obj) and not isinstance(found, types.GetSetDescriptorType):
                return self.wrap(vars(obj)[name], constant(obj).instance_item(name))
            if found is not MISSING and self.class_attribute(type(found), "__get__") is MISSING:
                return self.wrap(found, constant(type(obj)).then(TYPE_ATTRIBUTE, name))
            raise Break(f"attribute {name} of an Enum")
        if type(obj) in EQUAL_TYPES or self.is_numpy_scalar(obj):
            found = lookup(type(obj), name)
            if found is MISSING:
                return raise_(AttributeError, f"'{type(obj).__name__}' object has no attribute '{name}'")
            if isinstance(found, _METHODS_IN_C):
                return BuiltinMethod(value, name)
            result = getattr(obj, name)
            if type(result) in EQUAL_TYPES or self.is_numpy_scalar(result):
                return Constant(result)
            raise Break(f"attribute {name} of a {kind(obj)}")
        if isinstance(obj, re.Pattern):
            is_method = callable(getattr(obj, name, None))
            return BuiltinMethod(value, name) if is_method else self.attribute_of_pattern(obj, name)
        if isinstance(obj, types.CodeType) and name in ("co_flags", "co_name", "co_filename", "co_argcount", "co_varnames"):
            return self.constant_value(getattr(obj, name))
        if name in ("__name__", "__qualname__", "__module__") and isinstance(getattr(obj, name, None), str):
            return Constant(getattr(obj, name))
        if isinstance(obj, (types.BuiltinFunctionType, types.MethodDescriptorType)) and not hasattr(obj, name):
            return raise_(AttributeError, f"'{type(obj).__name__}' object has no attribute '{name}'")
        raise Break(f"attribute {name} of a {kind(obj)}")

    def attribute_of_class(self, cls: type, name: str) -> Value:
        """An attribute of a class."""
        if isinstance(cls, enum.EnumMeta):
            if name in cls.__members__:
                return Constant(cls.__members__[name])
        elif self.class_attribute(type(cls), "__getattribute__") is not type.__getattribute__:
            raise Break("a metaclass with __getattribute__")
        if name in _TYPE_ATTRIBUTES:
            found = getattr(cls, name)
            if isinstance(found, (str, type(None))) and not is_python_class(cls):
                return self.constant_value(found)
            is_entry = name in ("__doc__", "__module__") and vars(cls).get(name, MISSING) is found  # guards of which can be stored
            return self.wrap(found, constant(cls).then(TYPE_ATTRIBUTE, name) if is_entry else constant(cls).attribute(name))
        if name == "__class__":
            return self.type_constant(type(cls))
        if name == "__dict__":
            raise Break("__dict__ of a class")
        if self.classes and (written := self.written_attribute(cls, name)) is not None:
            return written
        found = self.class_attribute(cls, name)
        if found is MISSING:
            of_metaclass = self.class_attribute(type(cls), name)
            if of_metaclass is not MISSING and is_python_class(type(cls)) and not isinstance(cls, enum.EnumMeta):
                if isinstance(of_metaclass, types.FunctionType):
                    return MethodValue(self.wrap_class_function(of_metaclass), self.type_constant(cls))
                if self.class_attribute(type(of_metaclass), "__get__") is MISSING:
                    return self.wrap(of_metaclass, constant(type(cls)).then(TYPE_ATTRIBUTE, name))
            if of_metaclass is not MISSING or self.class_attribute(type(cls), "__getattr__") is not MISSING:
                raise Break(f"{cls.__name__}.{name} of the metaclass")
            return raise_(AttributeError, f"type object '{cls.__name__}' has no attribute '{name}'")
        if isinstance(found, types.FunctionType):
            return self.wrap_class_function(found)
        if isinstance(found, staticmethod):
            return self.wrap(found.__func__, constant(found.__func__))
        if isinstance(found, classmethod):
            return MethodValue(self.wrap(found.__func__, constant(found.__func__)), self.type_constant(cls))
        if isinstance(found, (property, types.MemberDescriptorType, types.GetSetDescriptorType, functools.cached_property)):
            return Constant(found)
        if isinstance(found, types.ClassMethodDescriptorType):
            return BuiltinMethod(self.type_constant(cls), name)
        getter = self.class_attribute(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            args = [self.wrap(found, constant(found)), Constant(None), self.type_constant(cls)]
            return self.call(self.wrap_class_function(getter), args, {})
        if getter is not MISSING and not isinstance(found, _METHODS_IN_C) and not callable(found):
            raise Break(f"a descriptor of the class {kind(found)}")
        return self.wrap(found, constant(cls).then(TYPE_ATTRIBUTE, name))

    def attribute_of_module(self, value: Constant, name: str) -> Value:
        """A global variable of a module of Python."""
        module = value.value
        source = value.source or constant(module)
        written = self.written_globals(vars(module))
        if name in written:
            return written[name] if written[name] is not DELETED else self._refuse_deleted(name)
        hook = vars(module).get("__getattr__")
        is_own = (vars(module).get("__file__") or "").startswith(PACKAGE) or vars(module).get("_is_teletensor") is True  # torch
        if name not in vars(module):
            if isinstance(hook, types.FunctionType) and type(module) is types.ModuleType and not (is_own or _imports(hook.__code__)):
                self.guards.check(CHECK_MISSING, source.then(INSTANCE_DICT), name)
                return self.call(self.wrap(hook, source.instance_item("__getattr__")), [Constant(name)], {})
            try:
                getattr(module, name)  # imported at its first use
            except AttributeError as e:
                if not is_own and (hook is not None or type(module) is not types.ModuleType):
                    raise Break(f"attribute {name}, which a module with __getattr__ lacks") from None
                self.guards.check(CHECK_MISSING, source.then(INSTANCE_DICT), name)
                return raise_(AttributeError, str(e))
        if module is ops:  # a namespace of operators
            return Constant(getattr(module, name), source.attribute(name))
        if name not in vars(module):
            if not is_own:
                raise Break(f"attribute {name} of a module with __getattr__")
            self.guards.check(CHECK_MISSING, source.then(INSTANCE_DICT), name)
            found = getattr(module, name)
            return self.wrap(found, constant(found))
        return self.wrap(vars(module)[name], source.instance_item(name))

    @staticmethod
    def _refuse_deleted(name: str) -> Any:
        raise Break(f"the global variable {name}, which the function has deleted")

    def has_attribute(self, value: Value, name: str) -> bool:
        """hasattr()."""
        try:
            self.get_attribute(value, name)
        except Raised as e:
            if issubclass(e.value.cls, AttributeError):
                return False
            raise
        return True

    def is_lazy(self, value: Value) -> bool:
        """Whether nothing has been read of the value."""
        return isinstance(value, Lazy)
