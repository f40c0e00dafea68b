"""Wrapping of existing objects as values, with the guards that they need."""

from __future__ import annotations

import collections
import enum
import functools
import gc
import random
import re
import threading
import types
import weakref
from typing import Any, Generic

from .. import _C
from .._C import Tensor
from .._layouts import layout, memory_format
from .._library.custom_op import is_operator
from ..nn import Buffer, Module, Parameter
from ._getters import KINDS_OF_GETTERS
from ._resume import call_first
from ._source import (
    ATTRIBUTE,
    CALL,
    CELL,
    CHECK_DYNAMIC_TENSOR,
    CHECK_EMPTY_CELL,
    CHECK_EQUAL,
    CHECK_IS,
    CHECK_KEYS,
    CHECK_LENGTH,
    CHECK_SAME,
    CHECK_TENSOR,
    CHECK_TYPE,
    DICT_ITEM,
    FUNCTION_CLOSURE,
    FUNCTION_CODE,
    FUNCTION_DEFAULTS,
    FUNCTION_GLOBALS,
    FUNCTION_KEYWORD_DEFAULTS,
    LIST_ITEM,
    METHOD_FUNCTION,
    METHOD_SELF,
    OF_SUBCLASS,
    SLOT,
    TUPLE_ITEM,
    Guards,
    Source,
    constant,
)  # fmt: skip
from ._values import (
    Break,
    BuiltinMethod,
    BuiltValue,
    CellValue,
    Constant,
    DequeValue,
    DictValue,
    FunctionValue,
    Lazy,
    MethodValue,
    Null,
    ObjectValue,
    Opaque,
    PartialValue,
    SequenceValue,
    SetValue,
    SliceValue,
    TensorValue,
    Value,
)  # fmt: skip

EQUAL_TYPES = frozenset((
    int, float, bool, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), _C.dtype, _C.device, range,
    type(_C.float32), layout, memory_format,
))  # fmt: skip
_IDENTITY_TYPES = (
    type, types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, types.ClassMethodDescriptorType, type(_C.overridable(lambda: None, "teletensor", "f")), types.GenericAlias,
    types.UnionType,
)  # fmt: skip
_MAX_ITEMS = 4096
_REGISTRIES = frozenset(vars(Module()))  # attributes of modules, in which only additions and removals change the order
LOCKS = (type(threading.Lock()), type(threading.RLock()))
TENSOR_TYPES = (Tensor, Parameter, Buffer)


def is_structseq(cls: type) -> bool:
    """Whether the class is the type of several named results, such as those of torch.max."""
    return issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def is_namedtuple(cls: type) -> bool:
    """Whether the class was made by collections.namedtuple or typing.NamedTuple."""
    if not issubclass(cls, tuple) or not isinstance(getattr(cls, "_fields", None), tuple):
        return False
    if cls.__bases__ in ((tuple,), (tuple, Generic)):
        return True
    return getattr(cls.__bases__[0], "into", None) is cls  # of results that were given as out=


def is_plain_namedtuple(cls: type) -> bool:
    """Whether the operators of a namedtuple are those of tuples; texts may be the user's."""
    own = ("__new__", "__getnewargs__", "__repr__", "__str__")
    return is_namedtuple(cls) and not any(
        isinstance(value, types.FunctionType) and name.startswith("__") and name not in own for name, value in vars(cls).items()
    )


def has_own_text(cls: type) -> bool:
    """Whether a namedtuple has a text that its class defines."""
    return is_namedtuple(cls) and ("__str__" in vars(cls) or vars(cls)["__repr__"].__module__ != "collections")


def entries_of_results(entries: dict[Any, Value]) -> dict[Any, tuple[Value, Value]]:
    """The items of a DictValue whose keys are constants."""
    if any(isinstance(key, tuple) for key in entries):
        raise Break("a dict with tuples as keys in a call of a transform or a pytree")
    return {key: (Constant(key), value) for key, value in entries.items()}


def _elements(ref: weakref.ref) -> list:
    """The elements of a deque; raises ReferenceError if it was freed."""
    found = ref()
    if found is None:
        raise ReferenceError("a deque that was freed")
    return list(found)


class Wrapping:
    """A part of Executor."""

    guards: Guards
    by_id: dict[int, Value]
    keep: list[Any]

    def real(self, value: Value) -> Value:
        """The value itself, or that of an object that nothing has been read of."""
        return self.wrap(value.obj, value.source) if type(value) is Lazy else value

    def wrap(self, obj: Any, source: Source) -> Value:
        """The value of an existing object. Adds guards on its type and, if it is immutable, on what it is."""
        check = self.guards.check
        cls = type(obj)
        if obj is call_first:
            check(CHECK_IS, source, obj)
            return Null()
        if cls is int:
            return self.wrap_int(obj, source)
        if cls is float:
            return self.wrap_float(obj, source)
        if cls in EQUAL_TYPES or isinstance(obj, enum.Enum):
            check(CHECK_IS if obj is None or cls is bool or isinstance(obj, enum.Enum) else CHECK_EQUAL, source, obj)
            return Constant(obj, source)
        if id(obj) in self.by_id:
            known = self.by_id[id(obj)]
            if known.source is not None and not self._is_stable(source, known.source):
                check(CHECK_SAME, source, None, self.guards.node(known.source))
            return known
        value = self._wrap_new(obj, cls, source)
        if not isinstance(value, (Constant, Opaque)):
            self.by_id[id(obj)] = value
            self.keep.append(obj)
        return value

    @staticmethod
    def _is_stable(a: Source, b: Source) -> bool:
        return a.kind == SLOT and b.kind == SLOT and a.index == b.index

    def _wrap_new(self, obj: Any, cls: type, source: Source) -> Value:
        check = self.guards.check
        if is_operator(obj):
            check(CHECK_IS, source, obj)
            return Constant(obj, source)
        if cls in TENSOR_TYPES:
            return self.wrap_tensor(obj, cls, source)
        if isinstance(obj, Tensor):
            if not isinstance(getattr(cls, "_functions", None), dict):
                raise Break(f"a tensor of the class {cls.__name__}")
            check(CHECK_TYPE, source, cls)  # a quantized weight: calls of the functions that it implements are those of its own
            return ObjectValue(cls, obj, source)
        if cls is list or issubclass(cls, tuple) and (cls in (tuple, _C.Size) or is_plain_namedtuple(cls) or is_structseq(cls)):
            check(CHECK_TYPE, source, cls)
            check(CHECK_LENGTH, source, None, len(obj))
            if len(obj) > _MAX_ITEMS:
                raise Break(f"a {cls.__name__} of more than {_MAX_ITEMS} elements")
            kind = LIST_ITEM if cls is list else TUPLE_ITEM
            value = SequenceValue([Lazy(item, source.then(kind, None, i)) for i, item in enumerate(obj)], cls, source)
            value.original = obj
            return value
        if cls in (dict, collections.OrderedDict, collections.defaultdict):
            return self._wrap_dict(obj, cls, source)
        if cls is types.MappingProxyType and source.kind == ATTRIBUTE and source.object == "_parameters":  # of an inspect.Signature
            check(CHECK_IS, source, obj)
            return self._wrap_proxy(obj, source)
        if cls is types.MappingProxyType:
            return self._wrap_proxy_of_mapping(obj, source)
        if cls in (set, frozenset):
            return self._wrap_set(obj, cls, source)
        if cls is collections.deque:
            return self._wrap_deque(obj, source)
        if cls in KINDS_OF_GETTERS:
            return self._wrap_getter(obj, cls, source)
        if cls is types.SimpleNamespace:
            check(CHECK_TYPE, source, cls)
            return ObjectValue(cls, obj, source)
        if cls is slice:
            check(CHECK_TYPE, source, cls)
            value = SliceValue([self.wrap(getattr(obj, n), source.attribute(n)) for n in ("start", "stop", "step")], source)
            value.original = obj
            return value
        if cls is types.FunctionType:
            return self.wrap_function(obj, source)
        if cls is types.MethodType:
            check(CHECK_TYPE, source, cls)
            function = self.wrap(obj.__func__, source.then(METHOD_FUNCTION))
            method = MethodValue(function, self.wrap(obj.__self__, source.then(METHOD_SELF)), source)
            method.original = obj
            return method
        if cls is types.CellType:
            return self.wrap_cell(obj, source)
        if cls is functools.partial:
            check(CHECK_TYPE, source, cls)
            if obj.__reduce__()[2][3] is not None:  # its __dict__, which reading the attribute would create
                raise Break("a partial with attributes")
            function = self.wrap(obj.func, source.attribute("func"))
            args = self.wrap(obj.args, source.attribute("args"))
            kwargs = self.wrap(obj.keywords, source.attribute("keywords"))
            partial = PartialValue(function, list(args.items), {k: v for k, (_, v) in kwargs.items.items()}, source)
            partial.original = obj
            return partial
        if isinstance(obj, _IDENTITY_TYPES) or cls is re.Pattern:
            check(CHECK_IS, source, obj)
            return Constant(obj, source)
        if cls is types.BuiltinFunctionType:
            is_function = obj.__self__ is None or isinstance(obj.__self__, (types.ModuleType, type))
            if type(obj.__self__) in (*LOCKS, random.Random):  # which graphs may release, or call
                check(CHECK_TYPE, source, cls)
                check(CHECK_EQUAL, source.attribute("__name__"), obj.__name__)
                return BuiltinMethod(self.wrap(obj.__self__, source.attribute("__self__")), obj.__name__)
            if not is_function and type(obj.__self__).__name__ != "PyCapsule":  # the bindings' functions have a capsule
                return Opaque(obj, source)
            check(CHECK_IS, source, obj)
            return Constant(obj, source)
        numpy = self.numpy
        if numpy is not None and isinstance(obj, (numpy.number, numpy.bool_)):
            check(CHECK_TYPE, source, cls)
            if not isinstance(obj, (float, complex, numpy.integer, numpy.bool_)) and (obj == 0 or obj != obj):
                return Opaque(obj, source)  # the comparison sees no signs of zeros and no NaN
            check(CHECK_EQUAL, source, obj)
            return Constant(obj, source)
        if cls.__module__ == "typing" or isinstance(obj, (types.CodeType, property, staticmethod, classmethod)):
            check(CHECK_IS, source, obj)
            return Constant(obj, source)
        if not (cls.__flags__ & 1 << 9) or isinstance(obj, BaseException):  # not a class in Python
            check(CHECK_TYPE, source, cls)
            return Opaque(obj, source)
        if issubclass(cls, (list, dict, set, str, int, float, tuple)) and not issubclass(cls, Module):
            if issubclass(cls, dict) and not issubclass(cls, collections.defaultdict):
                entries = self._wrap_dict(obj, cls, source)
                if isinstance(entries, DictValue):
                    entries.of_subclass = collections.OrderedDict if issubclass(cls, collections.OrderedDict) else dict
                    made = ObjectValue(cls, obj, source)
                    made.entries = entries
                    return made
            check(CHECK_TYPE, source, cls)
            if issubclass(cls, list) and self.class_attribute(cls, "__getitem__") is list.__getitem__ and list.__len__(obj) <= _MAX_ITEMS:
                return self._wrap_list_subclass(obj, cls, source)
            return Opaque(obj, source)
        check(CHECK_TYPE, source, cls)
        return ObjectValue(cls, obj, source)

    def _wrap_list_subclass(self, obj: list, cls: type, source: Source) -> ObjectValue:
        items = list.copy(obj)
        self.guards.check(CHECK_LENGTH, source, None, len(items))
        made = ObjectValue(cls, obj, source)
        made.entries = SequenceValue([Lazy(item, source.then(LIST_ITEM, None, i)) for i, item in enumerate(items)], list, source)
        made.entries.original, made.entries.is_of_subclass = obj, True
        return made

    def _wrap_dict(self, obj: dict, cls: type, source: Source) -> Value:
        if len(obj) > _MAX_ITEMS:
            raise Break(f"a dict of more than {_MAX_ITEMS} entries")
        items = {}
        is_ordered = issubclass(cls, collections.OrderedDict)
        keys = list(collections.OrderedDict.__iter__(obj) if is_ordered else dict.__iter__(obj))
        index = 0 if cls in (dict, collections.OrderedDict, collections.defaultdict) else OF_SUBCLASS
        for key in keys:
            is_type = isinstance(key, (type, enum.Enum, types.UnionType)) or type(key).__module__ == "typing"
            if type(key) not in EQUAL_TYPES and not is_type:
                return Opaque(obj, source)
            items[key] = (Constant(key), Lazy(dict.__getitem__(obj, key), source.then(DICT_ITEM, key, index)))
        self.guards.check(CHECK_TYPE, source, cls)
        self.guards.check(CHECK_KEYS, source, tuple(keys))
        if is_ordered and len(keys) > 1 and not (source.is_static and source.object in _REGISTRIES):
            self._guard_order(cls, keys, source)
        value = DictValue(items, cls, source)
        value.original = obj
        if cls is collections.defaultdict:
            value.default_factory = self.wrap(obj.default_factory, source.attribute("default_factory"))
        return value

    def _guard_order(self, cls: type, keys: list, source: Source) -> None:
        """Guards on the order of an OrderedDict, which move_to_end() changes although the dict counts as unchanged."""
        if self.class_attribute(cls, "__reversed__") is not collections.OrderedDict.__reversed__:
            raise Break(f"a {cls.__name__} with another __reversed__")
        advance = source.attribute("__reversed__").then(CALL).attribute("__next__")
        for i, key in enumerate(reversed(keys)):
            is_same = type(key) not in EQUAL_TYPES or key is None or type(key) is bool
            self.guards.check(CHECK_IS if is_same else CHECK_EQUAL, advance.then(CALL, None, i), key)  # each call advances

    def _wrap_proxy(self, obj: types.MappingProxyType, source: Source) -> Value:
        """A mapping of an immutable object of the standard library."""
        if any(type(key) is not str for key in obj):
            return Opaque(obj, source)
        value = DictValue({k: (Constant(k), Lazy(v, constant(v))) for k, v in obj.items()})
        value.is_of_object = True
        return value

    def _wrap_proxy_of_mapping(self, obj: types.MappingProxyType, source: Source) -> Value:
        """A mapping whose entries may change: guards read those of a copy."""
        self.guards.check(CHECK_TYPE, source, types.MappingProxyType)
        copied = obj.copy()
        if type(copied) not in (dict, collections.OrderedDict):
            return Opaque(obj, source)
        entries = self._wrap_dict(copied, type(copied), source.attribute("copy").then(CALL))
        if not isinstance(entries, DictValue):
            return Opaque(obj, source)
        self.keep.append(copied)
        self.proxied += gc.get_referents(obj)  # the mapping itself, which Python offers in no other way
        self.check_proxies()
        value = DictValue(entries.items, types.MappingProxyType, source)
        value.original, value.proxy_of, value.is_of_object = obj, entries, True
        return value

    def _wrap_set(self, obj: Any, cls: type, source: Source) -> Value:
        # The order of its elements is that of the iteration, which equal sets need not share: the elements are compared.
        elements = list(obj)
        if any(type(e) not in EQUAL_TYPES and not isinstance(e, (type, enum.Enum)) for e in elements) or len(elements) > 256:
            return Opaque(obj, source)
        self.guards.check(CHECK_TYPE, source, cls)
        # An unchanged dict, in which guards find a set, does not show that the set is unchanged: a copy is compared.
        found = source.attribute("copy").then(CALL) if cls is set else source
        self.guards.check(CHECK_EQUAL, found, cls(elements))
        value = SetValue({e: Constant(e) for e in elements}, cls, source)
        value.original = obj
        return value

    def _wrap_deque(self, obj: collections.deque, source: Source) -> Value:
        """A deque: guards have no access to its elements, so that they read those of the deque of this call, which must be the same."""
        if len(obj) > _MAX_ITEMS:
            raise Break(f"a deque of more than {_MAX_ITEMS} elements")
        ref = weakref.ref(obj)
        self.guards.check(CHECK_SAME, source, None, self.guards.node(constant(ref).then(CALL)))
        elements = constant(functools.partial(_elements, ref)).then(CALL)
        self.guards.check(CHECK_LENGTH, elements, None, len(obj))
        value = DequeValue([Lazy(item, elements.then(LIST_ITEM, None, i)) for i, item in enumerate(obj)], obj.maxlen, source)
        value.original = obj
        return value

    def _wrap_getter(self, obj: Any, cls: type, source: Source) -> Value:
        """An itemgetter, attrgetter or methodcaller, which is immutable."""
        self.guards.check(CHECK_IS, source, obj)
        make, args = obj.__reduce__()
        kwargs = {}
        if make is not cls:  # a partial, of a methodcaller with keyword arguments
            args, kwargs = (*make.args, *args), make.keywords
        values = [self.wrap(a, constant(a)) for a in args]
        return BuiltValue(cls, values, {k: self.wrap(v, constant(v)) for k, v in kwargs.items()}, KINDS_OF_GETTERS[cls], source)

    def wrap_function(self, obj: types.FunctionType, source: Source, is_stable: bool = False) -> FunctionValue:
        """A function; what its body reads is guarded when it runs."""
        check = self.guards.check
        if not is_stable:
            check(CHECK_TYPE, source, types.FunctionType)
        check(CHECK_IS, source.then(FUNCTION_CODE), obj.__code__)
        defaults, kwdefaults = obj.__defaults__ or (), obj.__kwdefaults__ or {}
        at = source.then(FUNCTION_DEFAULTS)
        closure = obj.__closure__ or ()
        value = FunctionValue(
            obj.__code__, obj.__globals__, obj.__name__,
            [Lazy(d, at.then(TUPLE_ITEM, None, i)) for i, d in enumerate(defaults)],
            {k: Lazy(d, source.then(FUNCTION_KEYWORD_DEFAULTS).then(DICT_ITEM, k)) for k, d in kwdefaults.items()},
            [self.wrap_cell_lazily(cell, source.then(FUNCTION_CLOSURE, None, i)) for i, cell in enumerate(closure)],
            source, obj,
        )  # fmt: skip
        value.globals_source = source.then(FUNCTION_GLOBALS)
        value.qualname = obj.__qualname__
        return value

    def check_defaults(self, function: FunctionValue) -> None:
        """Adds guards on the number of defaults, which determines how arguments are bound."""
        if function.original is None or function.source is None:
            return
        at = function.source.then(FUNCTION_DEFAULTS)
        if function.original.__defaults__ is None:
            self.guards.check(CHECK_IS, at, None)
        else:
            self.guards.check(CHECK_LENGTH, at, None, len(function.original.__defaults__))
        at = function.source.then(FUNCTION_KEYWORD_DEFAULTS)
        if function.original.__kwdefaults__ is None:
            self.guards.check(CHECK_IS, at, None)
        else:
            self.guards.check(CHECK_KEYS, at, tuple(function.original.__kwdefaults__))

    def wrap_cell_lazily(self, cell: types.CellType, source: Source) -> CellValue:
        """A cell of an existing function. Its content is read when a closure reads it."""
        known = self.by_id.get(id(cell))
        if known is not None:
            if known.source is not None:
                self.guards.check(CHECK_SAME, source, None, self.guards.node(known.source))
            return known
        value = CellValue(None, source, cell)
        try:
            value.content = Lazy(cell.cell_contents, source.then(CELL))
        except ValueError:
            self.guards.check(CHECK_EMPTY_CELL, source)
        self.by_id[id(cell)] = value
        self.keep.append(cell)
        return value

    wrap_cell = wrap_cell_lazily

    def wrap_tensor(self, obj: Tensor, cls: type, source: Source) -> TensorValue:
        """A tensor becomes an input of the graph when a call uses it."""
        if _C._is_wrapper(obj):
            raise Break("a tensor without values in the engine")
        dims = self.dims_of(obj, cls, source)
        if dims:
            self.guards.check(CHECK_DYNAMIC_TENSOR, source, (obj, dims))
        else:
            self.guards.check(CHECK_TENSOR, source, obj)
        value = TensorValue(None, None, cls, source, obj.is_leaf)
        value.original, value.dims = obj, dims
        value.example = self.stand_in(obj, dims)
        self.note_traced(source, value)
        return value

    def type_constant(self, cls: type) -> Constant:
        """A class, as the type of a value."""
        return Constant(cls, constant(cls))
