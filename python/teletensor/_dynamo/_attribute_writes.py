"""Attributes of values: writing and deleting them."""

from __future__ import annotations

import collections
import enum
import sys
import threading
import types

from ..nn import Module
from ._attributes import MISSING, MODULE_HOOKS, PACKAGE, STDLIB, is_python_class, lookup, raise_
from ._source import CHECK_MISSING, constant
from ._values import (
    DELETED,
    Break,
    CellValue,
    Constant,
    DequeValue,
    DictValue,
    ExceptionValue,
    FloatValue,
    FunctionValue,
    ObjectValue,
    SequenceValue,
    SetValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._wrap import EQUAL_TYPES

_DATA = (SequenceValue, DictValue, SetValue, DequeValue, SymbolValue, FloatValue)


class AttributeWrites:
    """A part of Executor."""

    def set_attribute(self, value: Value, name: str, new: Value) -> None:
        """value.name = new; DELETED deletes."""
        value = self.real(value)
        if isinstance(value, ObjectValue):
            return self._set_object_attribute(value, name, new)
        if isinstance(value, TensorValue) and name == "grad" and new is not DELETED:
            return self.set_grad(value, new)
        if isinstance(value, TensorValue) and name == "data":
            self.check_no_gradient(value)
        if isinstance(value, ExceptionValue):
            if name == "__context__" and value.source is None and new is not DELETED:
                new = self.real(new)
                value.context = new if isinstance(new, ExceptionValue) else None
                return None
            if name == "__traceback__" and value.source is None and new is not DELETED:
                return None  # the capture has none
            if new is DELETED or name.startswith("__"):
                raise Break(f"exception.{name} is written")
            value.attributes[name] = new
            return None
        if isinstance(value, FunctionValue) and value.original is None and new is not DELETED:
            if not hasattr(types.FunctionType, name):
                value.attributes[name] = new
                return None
            if name in ("__name__", "__qualname__") and isinstance(new, Constant):
                setattr(value, "name" if name == "__name__" else "qualname", new.value)
                return None
            if name in ("__module__", "__doc__"):
                value.attributes[name] = new
                return None
        if isinstance(value, FunctionValue) and new is not DELETED and not hasattr(types.FunctionType, name):
            if value.source is None or name in ("__wrapped__", "__signature__"):
                raise Break(f"attribute {name} of a function is written")
            value.attributes[name] = new
            self.note_write(value)
            return None
        if isinstance(value, Constant) and isinstance(value.value, type) and new is not DELETED:
            return self._set_class_attribute(value.value, name, new)
        if isinstance(value, Constant) and type(value.value) is types.ModuleType and new is not DELETED and not name.startswith("__"):
            own = vars(value.value)
            if not own["__file__"].startswith((PACKAGE, *STDLIB)) if own.get("__file__") else own.get("__spec__") is None:
                self.write_global(vars(value.value), name, new)
                return None
        if isinstance(value, TensorValue) and new is not DELETED and not value.may_exist and not hasattr(value.cls, name):
            if name.startswith("_dynamo") or self.class_attribute(value.cls, "__setattr__") is not object.__setattr__:
                raise Break(f"attribute {name} of a tensor is written")
            value.users_attributes[name] = new
            self.note_write(value)
            return None
        if isinstance(value, CellValue) and name == "cell_contents" and new is not DELETED:
            value.content = new
            self.note_write(value)
            return None
        raise Break(f"attribute {name} of a {kind(value)} is written")

    def _set_object_attribute(self, value: ObjectValue, name: str, new: Value) -> None:
        cls = value.cls
        hook = "__delattr__" if new is DELETED else "__setattr__"
        setter = self.class_attribute(cls, hook)
        if setter is MODULE_HOOKS[hook] and isinstance(value.original, Module):
            return self._set_module_attribute(value, name, new)
        if setter is threading.local.__setattr__ and value.original is not None and new is not DELETED:
            if self.class_attribute(cls, name) is not MISSING:
                raise Break(f"{cls.__name__}.{name} of a threading.local is written")
            value.attributes[name] = new
            self.note_write(value)
            return None
        if setter not in (getattr(object, hook), getattr(collections.OrderedDict, hook), getattr(types.SimpleNamespace, hook)):
            args = [value, Constant(name)] if new is DELETED else [value, Constant(name), new]
            if isinstance(setter, types.WrapperDescriptorType) and setter.__objclass__ is dict:  # __setattr__ = dict.__setitem__
                self.call_method(value, setter.__name__, args[1:], {})
                return None
            if not isinstance(setter, types.FunctionType):
                raise Break(f"{cls.__name__}.{hook}")
            self.call(self.wrap_class_function(setter), args, {})
            return None
        return self.set_plain_attribute(value, name, new)

    def set_plain_attribute(self, value: ObjectValue, name: str, new: Value) -> None:
        """object.__setattr__ and object.__delattr__."""
        cls = value.cls
        found = self.class_attribute(cls, name)
        if isinstance(found, property):
            accessor = found.fdel if new is DELETED else found.fset
            self.check_accessor(accessor)
            if accessor is None:
                kind = "deleter" if new is DELETED else "setter"
                return raise_(AttributeError, f"property '{name}' of '{cls.__name__}' object has no {kind}")
            self.call(self.wrap(accessor, constant(accessor)), [value] if new is DELETED else [value, new], {})
            return None
        if isinstance(found, types.MemberDescriptorType):
            if new is DELETED:
                raise Break("a slot is deleted")
            value.slots[name] = new
            self.note_write(value)
            return None
        if found is not MISSING:
            setter = self.class_attribute(type(found), "__set__")
            if isinstance(setter, types.FunctionType) and new is not DELETED:
                descriptor = self.wrap(found, constant(found))
                self.call(self.wrap_class_function(setter), [descriptor, value, new], {})
                return None
            deleter = self.class_attribute(type(found), "__delete__")
            if isinstance(deleter, types.FunctionType) and new is DELETED:
                self.call(self.wrap_class_function(deleter), [self.wrap(found, constant(found)), value], {})
                return None
            if setter is not MISSING or deleter is not MISSING:
                raise Break(f"a descriptor of the class {kind(found)}")
        if not cls.__dictoffset__:
            return raise_(AttributeError, f"'{cls.__name__}' object has no attribute '{name}'")
        if new is DELETED and self.instance_attribute(value, name) is None:
            is_short = sys.version_info < (3, 11)
            return raise_(AttributeError, name if is_short else f"'{cls.__name__}' object has no attribute '{name}'")
        self._write_instance(value, name, new)
        return None

    def _write_instance(self, value: ObjectValue, name: str, new: Value) -> None:
        """Writes an entry of the object's __dict__."""
        if value.instance_dict is not None:
            value.instance_dict.items.pop(name, None) if new is DELETED else value.instance_dict.items.update({name: (Constant(name), new)})
        if value.attributes.get(name) is DELETED:  # it becomes the last one
            del value.attributes[name]
            value.moved.add(name)
        value.attributes[name] = new
        self.note_write(value)

    def _set_module_attribute(self, value: ObjectValue, name: str, new: Value) -> None:
        new = new if new is DELETED else self.real(new)
        if isinstance(new, TensorValue) and new.cls.__name__ in ("Parameter", "Buffer"):
            raise Break("a parameter or buffer is registered")
        if isinstance(new, ObjectValue) and issubclass(new.cls, Module):
            raise Break("a submodule is registered")
        if "_buffers" not in vars(value.original) or new is DELETED:
            raise Break("an attribute of a Module is deleted")
        for registry in ("_parameters", "_modules", "_buffers"):
            entries = vars(value.original)[registry]
            if name not in entries:
                self.guards.check(CHECK_MISSING, value.source.instance_item(registry), name)
                continue
            if registry != "_buffers" or not isinstance(new, TensorValue):
                raise Break(f"{registry} of a Module are written")
            registered = self.wrap(entries, value.source.instance_item(registry))
            self.set_item(registered, Constant(name), new)
            return None
        return self.set_plain_attribute(value, name, new)

    def _set_class_attribute(self, cls: type, name: str, new: Value) -> None:
        new = self.real(new)
        is_plain = isinstance(new, (*_DATA, TensorValue)) or isinstance(new, Constant) and type(new.value) in EQUAL_TYPES
        if isinstance(new, ObjectValue):
            is_plain = all(self.class_attribute(new.cls, n) is MISSING for n in ("__get__", "__set__", "__delete__", "__set_name__"))
        is_own = cls.__module__.partition(".")[0] == "teletensor"
        if not is_plain or is_own or not is_python_class(cls) or issubclass(cls, (tuple, BaseException, enum.Enum)):
            raise Break(f"{cls.__name__}.{name} is written")
        if name.startswith("__") or lookup(type(cls), "__setattr__") is not type.__setattr__ or lookup(type(cls), name) is not MISSING:
            raise Break(f"{cls.__name__}.{name} is written")
        if any(not body.may_write for body in self._bodies):
            raise Break("a write to a class in a function that an operator calls")
        self.classes.setdefault(cls, {})[name] = new
