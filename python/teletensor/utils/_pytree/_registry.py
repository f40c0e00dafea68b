"""The container types of pytrees: how each is flattened and unflattened, and the keys of its children."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

Context = Any
PyTree = Any
DumpableContext = Any
FlattenFn = FlattenFunc = Callable[[PyTree], "tuple[list[Any], Context]"]
UnflattenFn = UnflattenFunc = Callable[[Iterable, Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
KeyPath = tuple
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[PyTree], "tuple[list[tuple[Any, Any]], Any]"]

NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
_SUBCLASSES_ALLOWED = 1 << 10  # CPython's Py_TPFLAGS_BASETYPE


class NodeDef(NamedTuple):
    """The functions of a registered container type."""

    type: type
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None


class SerializeNodeDef(NamedTuple):
    """The name of a container type in JSON, and the conversions of its context."""

    typ: type
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


_lock = threading.RLock()  # guards changes of the four registries below
SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


def _private_register_pytree_node(
    cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:  # fmt: skip
    """Registers a type; a type that is registered already gets the new functions, with a warning."""
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    with _lock:
        if cls in SUPPORTED_NODES:
            warnings.warn(
                f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=3
            )
        name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        SUPPORTED_SERIALIZED_TYPES[cls] = SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def register_pytree_node(
    cls: type, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *, serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None, from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:  # fmt: skip
    """Makes a type a container of pytrees.

    Args:
        flatten_fn: returns the object's children and a context from which unflatten_fn can rebuild it.
        unflatten_fn: builds an object from children and a context.
        serialized_type_name: the type's name in treespec_dumps.
        to_dumpable_context, from_dumpable_context: conversions of the context to and from values that JSON can express.
        flatten_with_keys_fn: like flatten_fn, with (key, child) pairs; required by the functions with paths.
    """
    with _lock:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        _private_register_pytree_node(
            cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name,
            to_dumpable_context=to_dumpable_context, from_dumpable_context=from_dumpable_context,
            flatten_with_keys_fn=flatten_with_keys_fn,
        )  # fmt: skip


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **options) -> None:
    """The deprecated form of register_pytree_node, which allows a second registration."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
            "`from_dumpable_context` instead.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type) -> None:
    """Makes a registered type a leaf again."""
    with _lock:
        del SUPPORTED_NODES[cls]
        name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
        SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)
        CONSTANT_NODES.discard(cls)


# -- keys


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The key of a sequence's element."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """Returns the element."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a mapping's value."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        """Returns the value."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The key of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        """Returns the attribute."""
        return getattr(obj, self.name)


# -- classes of tuples


def is_namedtuple_class(cls: type) -> bool:
    """Whether the class is a namedtuple, or a subclass of one."""
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    fields = getattr(cls, "_fields", None)
    methods = (getattr(cls, name, None) for name in ("_make", "_asdict"))
    return isinstance(fields, tuple) and all(type(f) is str for f in fields) and all(map(callable, methods))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether the object is an instance of a namedtuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether the object is a namedtuple class, or an instance of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether the class is one of CPython's struct sequences, such as time.struct_time."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in counts)
        and not cls.__flags__ & _SUBCLASSES_ALLOWED
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether the object is an instance of a struct sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether the object is a class of struct sequences, or an instance of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _register_result_type(cls: type) -> None:
    """Registers a type of operators' named results, which is created with the operator's first result."""
    register_pytree_node(
        cls, lambda values: (list(values), None), lambda values, _: cls(tuple(values)),
        serialized_type_name=f"torch.return_types.{cls.__qualname__}",
        flatten_with_keys_fn=lambda values: ([(SequenceKey(i), v) for i, v in enumerate(values)], None),
    )  # fmt: skip


def node_type(tree: PyTree) -> Any:
    """The registered type of an object: all namedtuples are registered together, as `namedtuple`."""
    kind = type(tree)
    if kind.__module__ == "teletensor.return_types" and kind not in SUPPORTED_NODES:
        _register_result_type(kind)
    return namedtuple if is_namedtuple_class(kind) else kind


# -- dataclasses and constants


def _dataclass_fields(cls: type, field_names: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
            )
        return field_names
    required = [f.name for f in dataclasses.fields(cls) if f.init]
    if field_names is None:
        return required
    wanted = set(required) - set(dropped)
    missing, unexpected = wanted - set(field_names), set(field_names) - wanted
    if missing or unexpected:
        text = "field_names does not include all dataclass fields.\n"
        if missing:
            text += (
                f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, please add "
                "them to `field_names`, otherwise please add them to `drop_field_names`.\n"
            )
        if unexpected:
            text += (
                f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to "
                "`drop_field_names`.\n"
            )
        raise ValueError(text)
    return field_names


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Makes a dataclass a container whose children are its fields that are not None."""
    names = _dataclass_fields(cls, field_names, drop_field_names or [])

    def flatten(obj):
        present = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [getattr(obj, name) for name in present], [present, absent]

    def flatten_with_keys(obj):
        children, context = flatten(obj)
        return [(GetAttrKey(name), child) for name, child in zip(context[0], children)], context

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    _private_register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: the constant."""

    value: Any


def register_constant(cls: type) -> None:
    """Makes a type a container without children, whose value is part of the structure."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    flatten = lambda x: ([], ConstantNode(x))  # noqa: E731
    with _lock:
        _private_register_pytree_node(cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten)
        CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether register_constant was called for the class."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
