"""Structures of pytrees as JSON, in PyTorch's format (protocol 1)."""

from __future__ import annotations

import enum
import functools
import json
import warnings
from typing import Any

from ._builtins import loaded_attribute
from ._registry import NO_SERIALIZED_TYPE_NAME_FOUND, SERIALIZED_TYPE_TO_PYTHON_TYPE, SUPPORTED_SERIALIZED_TYPES
from ._treespec import TreeSpec, treespec_leaf

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """Encodes members of enumerations by class and name."""

    def default(self, obj: object) -> Any:
        if isinstance(obj, enum.Enum):
            kind = type(obj)
            return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict) -> Any:
    """Decodes the members of enumerations that EnumEncoder encoded."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    kind = loaded_attribute(module, name)
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        raise TypeError(f"expected an enumeration, got {obj['fqn']}")
    return kind[obj["name"]]


def _to_json(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    found = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if found.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    if found.to_dumpable_context is not None:
        context = found.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as e:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                "_register_pytree_node."
            ) from e
    children = [_to_json(child) for child in spec.children()]
    return {"type": found.serialized_type_name, "context": context, "children_spec": children}


def _from_json(schema: dict) -> TreeSpec:
    name = schema["type"]
    if name is None and schema["context"] is None and not schema["children_spec"]:
        return treespec_leaf()
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Deserializing {name} in pytree failed because the serialized type is not registered in this process: register it "
            "with register_pytree_node(..., serialized_type_name=...), or import the package that does."
        )
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    found = SUPPORTED_SERIALIZED_TYPES[kind]
    if found.from_dumpable_context is not None:
        context = found.from_dumpable_context(schema["context"])
    else:
        context = json.loads(schema["context"], object_hook=enum_object_hook)
    return TreeSpec(kind, context, [_from_json(child) for child in schema["children_spec"]])


def _check_protocol(protocol: Any) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(
            f"Unknown protocol {protocol}. Available protocols: {[DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]}"
        )


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Returns a structure as JSON text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(protocol)
    return json.dumps((protocol, _to_json(treespec)), cls=EnumEncoder)


@functools.lru_cache
def treespec_loads(serialized: str) -> TreeSpec:
    """Returns the structure that treespec_dumps wrote. Enumerations and factories it names must be imported already."""
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(schema)


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Returns a structure as Python would print it, with ``*`` for each leaf."""
    return repr(treespec.unflatten([_Asterisk("*")] * treespec.num_leaves))


def pytree_to_str(treespec: TreeSpec) -> str:
    """The deprecated name of treespec_dumps."""
    warnings.warn("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.", FutureWarning, stacklevel=2)
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    """The deprecated name of treespec_loads."""
    warnings.warn("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.", FutureWarning, stacklevel=2)
    return treespec_loads(json)
