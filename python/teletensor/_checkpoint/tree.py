"""Python values as JSON, without pickle: decoding cannot run code.

None, booleans, integers, strings and finite floats are themselves, a list is a list; every other value is an object with
one key, its type. Tensors are encoded by the caller; sparse, nested and quantized ones are their components. Two references to one
sparse, nested or quantized tensor have equal encodings, and equal encodings are decoded as one object.
"""

from __future__ import annotations

import base64
import collections
import json
import math
from collections.abc import Callable
from typing import Any

from .. import _C, _layouts
from ..serialization._composed import REBUILD, is_composed, reduce_composed, require_storable
from ..serialization._errors import LoadError

_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CONTAINERS = {"tuple": tuple, "set": set, "frozenset": frozenset, "size": _C.Size}


def encode(value, encode_tensor: Callable | None = None):
    """Returns a value that json.dumps accepts.

    Raises:
        TypeError: the value, or one that it contains, has another type.
    """
    return _encode(value, encode_tensor, {})


def _encode(value, encode_tensor: Callable | None, composed: dict[int, dict]):
    """encode(). `composed`: the encodings of the sparse, nested and quantized tensors so far, by id()."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind is list:
        return [_encode(entry, encode_tensor, composed) for entry in value]
    for name, container in _CONTAINERS.items():
        if kind is container:
            return {name: [_encode(entry, encode_tensor, composed) for entry in value]}
    if kind in (dict, collections.OrderedDict, collections.defaultdict):
        name = "ordered_dict" if kind is collections.OrderedDict else "dict"
        return {name: [[encode(key), _encode(entry, encode_tensor, composed)] for key, entry in value.items()]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is complex:
        return {"complex": [encode(value.real), encode(value.imag)]}
    if kind is _C.dtype:
        return {"dtype": str(value).removeprefix("torch.")}
    if kind is _C.device:
        return {"device": str(value)}
    if encode_tensor is not None and isinstance(value, _C.Tensor):
        require_storable(value)
        if not is_composed(value):
            return {"tensor": encode_tensor(value)}
        if id(value) not in composed:
            name, args = reduce_composed(value)
            composed[id(value)] = {"composed": [name, _encode(args, encode_tensor, composed)]}
        return composed[id(value)]
    if kind is _layouts.layout:
        return {"layout": str(value).removeprefix("torch.")}
    raise TypeError(
        f"cannot store an object of type {kind.__module__}.{kind.__qualname__} in a checkpoint: expected tensors, None, "
        "bool, int, float, complex, str, bytes, list, tuple, set, dict, dtypes and devices. Objects are not pickled, "
        "because unpickling runs code"
    )


def decode(value, decode_tensor: Callable | None = None):
    """Returns the value that encode() encoded.

    Raises:
        ValueError: the JSON was not made by encode().
    """
    try:
        return _decode(value, decode_tensor, {})
    except (TypeError, KeyError, AttributeError, RecursionError, LoadError) as error:
        raise ValueError(f"[checkpoint] malformed value: {error}") from None


def _decode(value, decode_tensor, composed: dict[str, Any] | None):
    """decode(). `composed`: the sparse, nested and quantized tensors so far, by their encodings; None within the encoding of one, which
    contains no other."""
    if isinstance(value, list):
        return [_decode(entry, decode_tensor, composed) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](_decode(entry, decode_tensor, composed) for entry in content)
    if kind in ("dict", "ordered_dict"):
        result = collections.OrderedDict() if kind == "ordered_dict" else {}
        for key, entry in content:
            result[_key(_decode(key, None, composed))] = _decode(entry, decode_tensor, composed)
        return result
    if kind == "tensor" and decode_tensor is not None:
        return decode_tensor(content)
    if kind == "composed" and decode_tensor is not None:
        if composed is None:
            raise ValueError("[checkpoint] malformed value: the components of a tensor contain another sparse, nested or quantized tensor")
        text = json.dumps(content)
        if text not in composed:
            name, args = content
            composed[text] = REBUILD[name](*_decode(args, decode_tensor, None))
        return composed[text]
    return _SCALARS[kind](content)


def composed_entries(value) -> tuple[dict[str, dict], set[str]]:
    """Of the encoding of a dict: the encodings of its sparse, nested and quantized tensors by key, and the tensors that only these contain.

    Raises:
        ValueError: the JSON was not made by encode().
    """
    content = next(iter(value.values()), None) if isinstance(value, dict) and value.keys() & {"dict", "ordered_dict"} else []
    try:
        pairs = [(key, entry) for key, entry in content]
        composed = {k: e for k, e in pairs if isinstance(k, str) and isinstance(e, dict) and "composed" in e}
        others: set[str] = set()
        components: set[str] = set()
        for key, entry in pairs:
            add_tensors_of(entry, components if isinstance(key, str) and key in composed else others)
        return composed, components - others
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"[checkpoint] malformed value: {error}") from None


def add_tensors_of(value, found: set[str]) -> None:
    """Adds what encode_tensor() returned for the tensors of an encoded value."""
    if isinstance(value, list):
        entries = value
    elif isinstance(value, dict):
        if isinstance(name := value.get("tensor"), str):
            found.add(name)
            return
        entries = value.values()
    else:
        return
    for entry in entries:
        add_tensors_of(entry, found)


def _key(key):
    # The hashes of longer integers may collide, which would make decoding take quadratic time.
    if isinstance(key, int) and not -(2**63) <= key < 2**64:
        raise ValueError("a key has more than 64 bits")
    return key


def _dtype(name: str) -> _C.dtype:
    dtype = getattr(_C, name)
    if type(dtype) is not _C.dtype:
        raise ValueError(f"{name} is not a dtype")
    return dtype


def _layout(name: str) -> _layouts.layout:
    layout = getattr(_layouts, name)
    if type(layout) is not _layouts.layout:
        raise ValueError(f"{name} is not a layout")
    return layout


_SCALARS = {
    "float": lambda name: _SPECIAL_FLOATS[name],
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "complex": lambda parts: complex(*(decode(part) for part in parts)),
    "dtype": _dtype,
    "layout": _layout,
    "device": lambda name: _C.device(name),
}
