"""Registers the containers of Python's standard library."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque, namedtuple

from ._registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    GetAttrKey,
    MappingKey,
    SequenceKey,
    _private_register_pytree_node,
)  # fmt: skip


def loaded_attribute(module: str, qualname: str):
    """Returns an attribute of a module that is imported already. The names may come from a file: nothing is imported."""
    value = sys.modules.get(module)
    if value is None:
        raise ValueError(f"module {module!r} is not imported; import it before treespec_loads")
    for part in qualname.split("."):
        value = getattr(value, part)
    return value


def _sequence_with_keys(flatten):
    def flatten_with_keys(tree):
        children, context = flatten(tree)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context

    return flatten_with_keys


def _mapping_with_keys(flatten):
    def flatten_with_keys(tree):
        children, context = flatten(tree)
        return [(MappingKey(key), child) for key, child in zip(tree, children)], context

    return flatten_with_keys


def _flatten_items(tree):
    return list(tree), None


def _flatten_mapping(tree):
    return list(tree.values()), list(tree.keys())


# Names that libraries use to register their own sequences and mappings.
_tuple_flatten = _list_flatten = _flatten_items
_tuple_flatten_with_keys = _list_flatten_with_keys = _sequence_with_keys(_flatten_items)
_dict_flatten = _ordereddict_flatten = _flatten_mapping
_dict_flatten_with_keys = _ordereddict_flatten_with_keys = _mapping_with_keys(_flatten_mapping)


def _tuple_unflatten(values, context):
    return tuple(values)


def _list_unflatten(values, context):
    return list(values)


def _dict_unflatten(values, keys):
    return dict(zip(keys, values))


def _ordereddict_unflatten(values, keys):
    return OrderedDict(zip(keys, values))


def _namedtuple_flatten(tree):
    return list(tree), type(tree)


def _namedtuple_flatten_with_keys(tree):
    return [(GetAttrKey(name), child) for name, child in zip(tree._fields, tree)], type(tree)


def _namedtuple_unflatten(values, context):
    return context(*values)


def _namedtuple_serialize(context):
    if context not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    name = SUPPORTED_SERIALIZED_TYPES[context].serialized_type_name
    if name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we couldn't find a serialized_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return name


def _namedtuple_deserialize(name):
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serialized name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Registers the name of a namedtuple for treespec_dumps. Namedtuples are containers without this call."""
    _private_register_pytree_node(
        cls, _namedtuple_flatten, _namedtuple_unflatten, serialized_type_name=serialized_type_name,
        to_dumpable_context=_namedtuple_serialize, from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=_namedtuple_flatten_with_keys,
    )  # fmt: skip


def _defaultdict_flatten(tree):
    return list(tree.values()), [tree.default_factory, list(tree.keys())]


def _defaultdict_unflatten(values, context):
    factory, keys = context
    return defaultdict(factory, zip(keys, values))


def _defaultdict_serialize(context):
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": keys}


def _defaultdict_deserialize(dumped):
    expected = {"default_factory_module", "default_factory_name", "dict_context"}
    if not isinstance(dumped, dict) or set(dumped) != expected:
        raise AssertionError(f"dumpable_context must be a dict with keys {sorted(expected)}, got {dumped!r}")
    factory = loaded_attribute(dumped["default_factory_module"], dumped["default_factory_name"])
    if not isinstance(factory, type):
        raise TypeError(f"the default_factory of a loaded defaultdict must be a class, got {type(factory).__name__}")
    return [factory, dumped["dict_context"]]


_defaultdict_flatten_with_keys = _mapping_with_keys(_defaultdict_flatten)


def _deque_flatten(tree):
    return list(tree), tree.maxlen


def _deque_unflatten(values, maxlen):
    return deque(values, maxlen=maxlen)


_deque_flatten_with_keys = _sequence_with_keys(_deque_flatten)


def register_all() -> None:
    """Registers the containers. Called once, when the package is imported."""
    for name, cls, flatten, unflatten, flatten_with_keys in (
        ("builtins.tuple", tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
        ("builtins.list", list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
        ("builtins.dict", dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
        ("collections.OrderedDict", OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys),
        ("collections.deque", deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
    ):
        _private_register_pytree_node(
            cls, flatten, unflatten, serialized_type_name=name, flatten_with_keys_fn=flatten_with_keys
        )
    _private_register_pytree_node(
        namedtuple, _namedtuple_flatten, _namedtuple_unflatten, serialized_type_name="collections.namedtuple",
        to_dumpable_context=_namedtuple_serialize, from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=_namedtuple_flatten_with_keys,
    )  # fmt: skip
    _private_register_pytree_node(
        defaultdict, _defaultdict_flatten, _defaultdict_unflatten, serialized_type_name="collections.defaultdict",
        to_dumpable_context=_defaultdict_serialize, from_dumpable_context=_defaultdict_deserialize,
        flatten_with_keys_fn=_defaultdict_flatten_with_keys,
    )  # fmt: skip
