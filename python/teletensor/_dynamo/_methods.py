"""Methods in C of lists, tuples, dicts, sets, strings, iterators and exceptions."""

from __future__ import annotations

import collections
import contextvars
import functools
import random
import re
import types
from typing import Any

from . import _builtin_library, _deques, _random_numbers
from ._attributes import is_python_class, raise_
from ._builtin_containers import update_dict
from ._builtin_iteration import sort
from ._calls import CONTAINERS
from ._comparisons import COMPARE, fold
from ._operators import BINARY, IN_PLACE
from ._source import CALL, CHECK_IS, constant
from ._values import (
    DELETED,
    Break,
    Constant,
    DequeValue,
    DictValue,
    DictView,
    ExceptionValue,
    FunctionValue,
    GeneratorValue,
    HandleValue,
    IteratorValue,
    MatchValue,
    MethodValue,
    NeedsPlainRun,
    ObjectValue,
    Opaque,
    Raised,
    SequenceValue,
    SetValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._wrap import LOCKS, is_namedtuple, is_plain_namedtuple

_SIGNS = {f"__{name}__": sign for sign, (name, _) in BINARY.items()} | {f"__{n}__": sign for sign, (n, _, _) in COMPARE.items()}
_IN_PLACE_SIGNS = {f"__{name}__": sign for sign, (name, _) in IN_PLACE.items()}
_SPECIAL = {
    "__getitem__": lambda ex, v, a: ex.get_item(v, a[0]), "__len__": lambda ex, v, a: ex.length(v),
    "__contains__": lambda ex, v, a: Constant(ex.contains(v, a[0])), "__iter__": lambda ex, v, a: ex.iterate(v),
    "__setitem__": lambda ex, v, a: ex.set_item(v, *a) or Constant(None),
    "__delitem__": lambda ex, v, a: ex.delete_item(v, *a) or Constant(None),
    "__bool__": lambda ex, v, a: Constant(ex.truth(v)), "__next__": lambda ex, v, a: ex.advance(v),
}  # fmt: skip


_OF_OBJECTS = {"__getattribute__", "__setattr__", "__delattr__", "__class__", "__new__"}
_DICT_METHODS = frozenset((*vars(dict), *vars(collections.OrderedDict))) - _OF_OBJECTS
_CONTAINER_METHODS = {cls: frozenset(vars(cls)) - _OF_OBJECTS for cls in CONTAINERS}

_MISSING = object()


class Methods:
    """A part of Executor."""

    def call_method(self, value: Value, name: str, args: list[Value], kwargs: dict[str, Value], owner: type | None = None) -> Value:
        """The result of a method in C."""
        value = self.plain(self.real(value))
        if isinstance(value, TensorValue):
            return self.call_tensor_method(value, name, args, kwargs)
        if isinstance(value, ObjectValue) or owner is object:
            return self._object_method(value, name, args, kwargs)
        if isinstance(value, FunctionValue) and name == "__get__" and args and not kwargs:
            of = self.real(args[0])
            return value if isinstance(of, Constant) and of.value is None else MethodValue(value, of)
        if isinstance(value, HandleValue):
            return self.call_handle(value, name, args)
        if isinstance(value, GeneratorValue):
            return self.call_generator_method(value, name, args)
        if name in _SPECIAL and not kwargs and not isinstance(value, (ExceptionValue, MatchValue)):
            return _SPECIAL[name](self, value, args)
        if name in _SIGNS and len(args) == 1 and not kwargs and not isinstance(value, ExceptionValue):
            sign = _SIGNS[name]
            return self.compare(sign, value, args[0]) if sign in COMPARE else self.binary(sign, value, args[0])
        if isinstance(value, SequenceValue):
            return self._sequence_method(value, name, args, kwargs)
        if isinstance(value, DequeValue):
            return _deques.call_method(self, value, name, args, kwargs)
        if isinstance(value, DictValue):
            return self._dict_method(value, name, args, kwargs)
        if isinstance(value, SetValue):
            return self._set_method(value, name, args)
        if isinstance(value, DictView) and value.is_set and name == "isdisjoint":
            return self._set_method(self.set_of(value), name, args)
        if isinstance(value, MatchValue):
            return _builtin_library.call_of_match(self, value, name, args, kwargs)
        if isinstance(value, ExceptionValue):
            if name == "__init__" and not kwargs:
                value.args = list(args)
                return Constant(None)
            raise Break(f"exception.{name}()")
        if isinstance(value, Constant):
            of_class = self.handlers.get(getattr(value.value, name, None)) if isinstance(value.value, type) else None
            if of_class is not None:
                return of_class(self, args, kwargs)
            return self._constant_method(value, name, args, kwargs)
        if isinstance(value, IteratorValue) and name == "__iter__":
            return value
        if isinstance(value, Opaque) and type(value.obj) is contextvars.ContextVar and name == "get" and not kwargs:
            return self._get_of_context(value, args)
        raise Break(f"{name}() of a {kind(value)}")

    def _get_of_context(self, value: Opaque, args: list[Value]) -> Value:
        """ContextVar.get()"""
        variable = value.obj
        self.guards.check(CHECK_IS, value.source, variable)
        get = functools.partial(variable.get, _MISSING) if args else variable.get
        try:
            found = get()
        except LookupError:
            raise Break("get() of a ContextVar without a value") from None
        at = constant(get).then(CALL)
        if found is _MISSING:
            self.guards.check(CHECK_IS, at, _MISSING)
            return args[0]
        return self.wrap(found, at)

    def _contents_method(self, value: ObjectValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A method of list, tuple or set of an object of a subclass."""
        entries = value.entries
        if name == "__init__":
            if kwargs or len(args) > 1:
                raise Break(f"{value.cls.__name__}() gets wrong arguments")
            if entries.cls is list:
                entries.items[:] = self.elements(args[0]) if args else []
            elif entries.cls is set:
                made = self.set_of(args[0]) if args else SetValue({}, is_ordered=True)
                entries.items, entries.is_ordered = made.items, made.is_ordered
            return Constant(None)
        if name in _IN_PLACE_SIGNS and entries.cls in (list, set):
            self.binary(_IN_PLACE_SIGNS[name], entries, args[0])
            return value
        if name == "copy" and entries.cls in (set, frozenset) or name in ("__reduce__", "__reduce_ex__", "__repr__", "__hash__"):
            raise Break(f"{value.cls.__name__}.{name}()")
        return self.call_method(entries, name, args, kwargs)

    def _entries_method(self, value: ObjectValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A method of dict of an object of a subclass."""
        entries = value.entries
        if name == "__setitem__":
            self.set_item(entries, *args)
            return Constant(None)
        if name == "__delitem__":
            self.delete_item(entries, *args)
            return Constant(None)
        if name == "__getitem__":
            return self.entry_of(value, *args)
        if name == "__contains__":
            return Constant(self.contains(entries, *args))
        if name == "__len__":
            return self.length(entries)
        if name == "__iter__":
            return self.iterate(entries)
        is_ordered = issubclass(value.cls, collections.OrderedDict)
        if name in ("__init__", "update", "setdefault") and is_ordered and self.entries_of(value, "__setitem__") is None:
            raise Break(f"OrderedDict.{name}() with another __setitem__")
        if name == "copy" and is_ordered or name.startswith("__") and name != "__init__":
            raise Break(f"{value.cls.__name__}.{name}()")
        if name == "copy" and not args:
            return DictValue(dict(entries.items))
        return self._dict_method(entries, name, args, kwargs)

    def _object_method(self, value: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if isinstance(value, ObjectValue) and isinstance(value.entries, (SequenceValue, SetValue)):
            if name in _CONTAINER_METHODS[value.entries.cls]:
                return self._contents_method(value, name, args, kwargs)
        elif isinstance(value, ObjectValue) and value.entries is not None and name in _DICT_METHODS:
            return self._entries_method(value, name, args, kwargs)
        if isinstance(value, ObjectValue) and value.cls in LOCKS and name in ("__exit__", "release") and value.source is not None:
            if self._bodies or value in self.releases:
                raise Break("a lock is released in a function that an operator calls, or twice")
            is_held = value.source.attribute("locked" if hasattr(value.original, "locked") else "_is_owned").then(CALL)
            if not getattr(value.original, is_held.parent.object)():
                raise Break("a lock that is not held is released")
            self.guards.check(CHECK_IS, is_held, True)
            self.releases.append(value)  # it was acquired before the graph: guards are checked while it is held
            return Constant(None)
        if isinstance(value, ObjectValue) and value.cls is random.Random and name in _random_numbers.IN_C:
            return _random_numbers.draw(self, value, name, args, kwargs)
        if name == "__setattr__" and isinstance(value, ObjectValue):
            self.set_plain_attribute(value, self.python_value(args[0]), args[1])
            return Constant(None)
        if name == "__delattr__" and isinstance(value, ObjectValue):
            self.set_plain_attribute(value, self.python_value(args[0]), DELETED)
            return Constant(None)
        if name == "__getattribute__" and isinstance(value, ObjectValue):
            return self.plain_attribute(value, self.python_value(args[0]), has_hook=False)
        if name in ("__init__", "__init_subclass__") and not args and not kwargs:
            return Constant(None)
        if name in ("__eq__", "__ne__") and isinstance(value, ObjectValue):
            same = value is self.real(args[0])
            return Constant(same if name == "__eq__" else not same) if same else Constant(NotImplemented)
        raise Break(f"object.{name}()")

    def _sequence_method(self, value: SequenceValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        items = value.items
        if name == "index" and len(args) == 1:
            for i, item in enumerate(items):
                if self.is_or_equals(item, args[0]):
                    return Constant(i)
            if value.cls is list and isinstance(wanted := self.plain(self.real(args[0])), Constant):
                return raise_(ValueError, f"{wanted.value!r} is not in list")
            raise Break("index() of a value that is missing")
        if name == "count" and len(args) == 1:
            return Constant(sum(self.is_or_equals(i, args[0]) for i in list(items)))
        if name == "numel" and not args:
            return fold(value.cls(self.python_value(i) for i in items).numel)
        if is_namedtuple(value.cls) and name in ("_replace", "_asdict") and not args:
            fields = value.cls._fields
            if name == "_asdict" and not kwargs:
                return DictValue({k: (Constant(k), v) for k, v in zip(fields, items)})
            if name == "_replace" and kwargs.keys() <= set(fields):
                return SequenceValue([kwargs.get(k, v) for k, v in zip(fields, items)], value.cls)
            raise Break(f"{name}() of a named tuple")
        if value.cls is not list:
            raise Break(f"tuple.{name}()")
        if name == "copy":
            return SequenceValue(list(items), list)
        self.note_write(value)
        if name == "append" and len(args) == 1:
            items.append(args[0])
        elif name == "extend" and len(args) == 1:
            iterator = self.iterate(args[0]) if self.real(args[0]) is not value else self.over(list(items))
            while (item := self.next_or_none(iterator)) is not None:
                items.append(item)
        elif name == "insert" and len(args) == 2:
            items.insert(self.index_of(args[0]), args[1])
        elif name == "pop" and len(args) < 2:
            try:
                return items.pop(*(self.index_of(a) for a in args))
            except IndexError as e:
                return raise_(IndexError, str(e))
        elif name == "remove" and len(args) == 1:
            for i, item in enumerate(items):
                if self.is_or_equals(item, args[0]):
                    del items[i]
                    return Constant(None)
            return raise_(ValueError, "list.remove(x): x not in list")
        elif name == "clear" and not args:
            items.clear()
        elif name == "reverse" and not args:
            items.reverse()
        elif name == "sort" and not args:
            sort(self, value, kwargs)
        elif name == "__iadd__" and len(args) == 1:
            items.extend(self.elements(args[0]))
            return value
        else:
            raise Break(f"list.{name}()")
        return Constant(None)

    def _dict_method(self, value: DictValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "get" and args:
            found = value.items.get(self.key_of(args[0]))
            return found[1] if found else (args[1] if len(args) > 1 else Constant(None))
        if name in ("keys", "values", "items") and not args:
            return DictView(value, name)
        if name == "copy" and not args:
            copied = DictValue(dict(value.items), value.cls if value.proxy_of is None else value.proxy_of.cls)
            copied.default_factory = value.default_factory
            return copied
        if name == "setdefault" and args:
            key = self.key_of(args[0])
            if key not in value.items:
                self.write_entry(value, key, args[0], args[1] if len(args) > 1 else Constant(None))
            return value.items[key][1]
        if name == "update":
            update_dict(self, value, args, kwargs)
            return Constant(None)
        if name == "__init__":
            update_dict(self, value, args, kwargs)
            return Constant(None)
        if name == "pop" and args:
            key = self.key_of(args[0])
            if key not in value.items:
                if len(args) > 1:
                    return args[1]
                raise Raised(ExceptionValue(KeyError, [args[0]]))
            self._check_owner(value)
            self.note_write(value)
            value.is_rebuilt = True
            return value.items.pop(key)[1]
        if name in ("popitem", "clear"):
            self._check_owner(value)
        is_ordered = value.cls is collections.OrderedDict
        if name == "move_to_end" and is_ordered:
            return self._move_to_end(value, *args, **kwargs)
        if name == "popitem" and (is_ordered or not args and not kwargs) and value.items:
            self.note_write(value)
            value.is_rebuilt = True
            is_last = not args and not kwargs or self.truth(*args, *kwargs.values())
            key = next(reversed(value.items) if is_last else iter(value.items))
            return SequenceValue(list(value.items.pop(key)), tuple)
        if name == "clear" and not args:
            self.note_write(value)
            value.is_rebuilt = True
            value.items.clear()
            return Constant(None)
        raise Break(f"dict.{name}()")

    def _move_to_end(self, value: DictValue, key: Value, last: Value | None = None) -> Value:
        """OrderedDict.move_to_end()"""
        wanted = self.key_of(key)
        if wanted not in value.items:
            raise Raised(ExceptionValue(KeyError, [key]))
        self._check_owner(value)
        self.note_write(value)
        value.is_rebuilt = True
        moved = {wanted: value.items.pop(wanted)}
        if last is None or self.truth(last):
            value.items.update(moved)
        else:
            moved.update(value.items)
            value.items.clear()
            value.items.update(moved)
        return Constant(None)

    @staticmethod
    def _check_owner(value: DictValue) -> None:
        if value.owner is not None:
            raise Break("an entry of the __dict__ of an object is removed")

    def _set_method(self, value: SetValue, name: str, args: list[Value]) -> Value:
        if name in ("union", "intersection", "difference", "symmetric_difference", "update", "issubset", "issuperset", "isdisjoint"):
            others = [self.set_of(a) for a in args]
            if name in ("issubset", "issuperset", "isdisjoint"):
                return Constant(getattr(set(value.items), name)(set(others[0].items)))
            result = SetValue(dict(value.items), value.cls)
            sign = {"union": "|", "update": "|", "intersection": "&", "difference": "-", "symmetric_difference": "^"}[name]
            for other in others:
                result = self._set_operation(sign, result, other)
            if name != "update":
                result.is_ordered &= name == "intersection"
                return result
            self.note_write(value)
            value.items = result.items
            value.is_ordered &= all(other.is_ordered for other in others)
            return Constant(None)
        if name == "copy":
            return SetValue(dict(value.items), value.cls)
        if value.cls is set and name in ("add", "discard", "remove") and len(args) == 1:
            key = self.key_of(args[0])
            if name == "remove" and key not in value.items:
                raise Raised(ExceptionValue(KeyError, [args[0]]))
            self.note_write(value)
            if name == "add":
                value.items.setdefault(key, args[0])
            elif value.items.pop(key, None) is not None:
                value.is_ordered = False
            return Constant(None)
        if value.cls is set and name == "pop" and not args:
            if len(value.items) > 1:
                raise NeedsPlainRun("the order of a set")
            if not value.items:
                return raise_(KeyError, "pop from an empty set")
            self.note_write(value)
            value.is_ordered = False
            return value.items.popitem()[1]
        if value.cls is set and name == "clear" and not args:
            self.note_write(value)
            value.items, value.is_ordered, value.is_cleared = {}, True, True
            return Constant(None)
        raise Break(f"set.{name}()")

    def _constant_method(self, value: Constant, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        obj = value.value
        if isinstance(obj, re.Pattern):
            return _builtin_library.call_of_pattern(self, obj, name, args, kwargs)
        if isinstance(obj, str) and name == "join" and len(args) == 1:
            return fold(obj.join, [self.python_value(i) for i in self.elements(args[0])])
        if isinstance(obj, type):
            if name == "fromkeys" and obj in (dict, collections.OrderedDict, collections.defaultdict) and not kwargs:
                default = args[1] if len(args) > 1 else Constant(None)
                return DictValue({self.key_of(k): (k, default) for k in self.elements(args[0])}, obj)
            if name == "__new__" and obj is object and args:
                cls = self.python_value(args[0])
                return ObjectValue(cls) if self.can_be_created(cls) else self._refuse(cls)
            if name == "__new__" and obj is tuple and args and not kwargs:
                cls = self.python_value(args[0])
                if cls is tuple or is_plain_namedtuple(cls):
                    return SequenceValue(self.elements(args[1]) if len(args) > 1 else [], cls)
            if name == "__new__" and obj in CONTAINERS and args and not kwargs:
                cls = self.python_value(args[0])
                if isinstance(cls, type) and issubclass(cls, obj) and all(b in (object, obj) or is_python_class(b) for b in cls.__mro__):
                    made = ObjectValue(cls)
                    made.entries = self.real(self.constructors[obj](self, args[1:] if obj in (tuple, frozenset) else [], {}))
                    return made
            if name in ("__subclasses__", "mro"):
                raise Break(f"type.{name}()")
        if not self.is_folded(value, name) or isinstance(obj, (type, types.ModuleType)):
            raise Break(f"{name}() of a {kind(obj)}")
        if isinstance(obj, (str, bytes)) and name in ("format", "encode", "format_map"):
            constants = [self.python_value(a) for a in args]
            if any(not isinstance(c, (int, float, str, bytes, type(None), tuple)) for c in constants):
                raise Break("the text of an object")
        positional, keywords = [self.python_value(a) for a in args], {k: self.python_value(v) for k, v in kwargs.items()}
        if name == "__hash__":
            self.note_hash(obj)
        elif name in ("format", "format_map", "__format__"):
            for text in (obj, *positional):
                self.note_format(text)
        result = fold(lambda: getattr(obj, name)(*positional, **keywords))
        if result.value is NotImplemented:
            return result
        return self.constant_value(result.value)

    def _refuse(self, cls: Any) -> Value:
        raise Break(f"a {getattr(cls, '__name__', cls)} is created")

    def can_be_created(self, cls: Any) -> bool:
        """Whether object.__new__ makes an object of the class whose attributes are all in Python."""
        return isinstance(cls, type) and all(base is object or base.__flags__ & 1 << 9 for base in cls.__mro__)
