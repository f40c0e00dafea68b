"""Python values as JSON, without pickle: decoding cannot run code.

None, booleans, integers, strings and finite floats are themselves, a list is a list; every other value is an object with
one key, its type. Tensors are encoded by the caller; sparse and nested ones are their components.
"""

from __future__ import annotations

import base64
import collections
import math
from collections.abc import Callable

from .. import _C, _layouts
from ..serialization._composed import REBUILD, is_composed, reduce_composed
from ..serialization._errors import LoadError

_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CONTAINERS = {"tuple": tuple, "set": set, "frozenset": frozenset, "size": _C.Size}


def encode(value, encode_tensor: Callable | None = None):
    """Returns a value that json.dumps accepts.

    Raises:
        TypeError: the value, or one that it contains, has another type.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind is list:
        return [encode(entry, encode_tensor) for entry in value]
    for name, container in _CONTAINERS.items():
        if kind is container:
            return {name: [encode(entry, encode_tensor) for entry in value]}
    if kind in (dict, collections.OrderedDict, collections.defaultdict):
        name = "ordered_dict" if kind is collections.OrderedDict else "dict"
        return {name: [[encode(key), encode(entry, encode_tensor)] for key, entry in value.items()]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is complex:
        return {"complex": [encode(value.real), encode(value.imag)]}
    if kind is _C.dtype:
        return {"dtype": str(value).removeprefix("torch.")}
    if kind is _C.device:
        return {"device": str(value)}
    if encode_tensor is not None and isinstance(value, _C.Tensor):
        if not is_composed(value):
            return {"tensor": encode_tensor(value)}
        name, args = reduce_composed(value)
        return {"composed": [name, encode(args, encode_tensor)]}
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
        return _decode(value, decode_tensor)
    except (TypeError, KeyError, AttributeError, RecursionError, LoadError) as error:
        raise ValueError(f"[checkpoint] malformed value: {error}") from None


def _decode(value, decode_tensor):
    if isinstance(value, list):
        return [_decode(entry, decode_tensor) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](_decode(entry, decode_tensor) for entry in content)
    if kind in ("dict", "ordered_dict"):
        result = collections.OrderedDict() if kind == "ordered_dict" else {}
        for key, entry in content:
            result[_key(_decode(key, None))] = _decode(entry, decode_tensor)
        return result
    if kind == "tensor" and decode_tensor is not None:
        return decode_tensor(content)
    if kind == "composed" and decode_tensor is not None:
        name, args = content
        return REBUILD[name](*_decode(args, decode_tensor))
    return _SCALARS[kind](content)


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
