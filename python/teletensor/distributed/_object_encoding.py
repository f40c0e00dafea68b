"""Python values as bytes, for the object collectives. Never pickle: decoding cannot run code.

An encoded value is the length of a JSON text (8 bytes, little endian), the text, and the bytes of bytes objects, arrays
and tensors. In the text, a value that JSON cannot represent is an object with one key, its type.
"""

from __future__ import annotations

import collections
import json
import math
from collections.abc import Callable

from .. import _C

_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "size": _C.Size}


class _Encoder:
    def __init__(self):
        self.blobs: list[bytes] = []
        self._size = 0

    def blob(self, data: bytes) -> list[int]:
        begin, self._size = self._size, self._size + len(data)
        self.blobs.append(data)
        return [begin, len(data)]

    def encode(self, value):
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is list:
            return [self.encode(entry) for entry in value]
        for name, container in _CONTAINERS.items():
            if kind is container:
                return {name: [self.encode(entry) for entry in value]}
        if kind in (dict, collections.OrderedDict):
            name = "dict" if kind is dict else "ordered_dict"
            return {name: [[self.encode(key), self.encode(entry)] for key, entry in value.items()]}
        if kind in (bytes, bytearray):
            return {kind.__name__: self.blob(bytes(value))}
        if kind is complex:
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if isinstance(value, _C.Tensor):
            return {"tensor": self._tensor(value)}
        if type(value) is _C.dtype:
            return {"dtype": _name(value)}
        if isinstance(value, _C.device):
            return {"device": str(value)}
        return self._numpy(value)

    def _tensor(self, tensor: _C.Tensor):
        tensor = tensor.detach().cpu().contiguous()
        name = _name(tensor.dtype)
        flat = tensor.reshape(-1)
        if name.startswith(("bfloat16", "float8")):  # NumPy has no such types
            flat = flat.view(_C.uint8)
        return [name, list(tensor.shape), self.blob(flat.numpy().tobytes())]

    def _numpy(self, value):
        import numpy as np

        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject and value.dtype.names is None:
            name = "array" if isinstance(value, np.ndarray) else "scalar"
            return {name: [value.dtype.str, list(value.shape), self.blob(np.ascontiguousarray(value).tobytes())]}
        raise TypeError(
            f"cannot send an object of type {type(value).__module__}.{type(value).__qualname__}: expected None, bool, int, float, "
            "complex, str, bytes, list, tuple, dict, set, NumPy arrays and tensors. Objects are not pickled, because "
            "unpickling runs code"
        )


def _name(dtype: _C.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class _Decoder:
    # Each is decoded by the method of this name after an underscore.
    KINDS = frozenset({"float", "complex", "dict", "ordered_dict", "bytes", "bytearray", "dtype", "device", "array", "scalar", "tensor"})

    def __init__(self, blobs: memoryview):
        self._blobs = blobs

    def blob(self, place) -> memoryview:
        begin, size = place
        if not 0 <= begin <= begin + size <= len(self._blobs):
            raise ValueError("a value's bytes are missing")
        return self._blobs[begin : begin + size]

    def decode(self, value):
        if isinstance(value, list):
            return [self.decode(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind in _CONTAINERS:
            return _CONTAINERS[kind](self.decode(entry) for entry in content)
        if kind not in self.KINDS:
            raise ValueError(f"expected the name of a type, got {kind!r:.100}")
        return getattr(self, f"_{kind}")(content)

    def _float(self, name: str) -> float:
        return _SPECIAL_FLOATS[name]

    def _complex(self, parts) -> complex:
        return complex(*map(self.decode, parts))

    def _dict(self, items) -> dict:
        return {self.decode(key): self.decode(entry) for key, entry in items}

    def _ordered_dict(self, items) -> collections.OrderedDict:
        return collections.OrderedDict(self._dict(items))

    def _bytes(self, place) -> bytes:
        return bytes(self.blob(place))

    def _bytearray(self, place) -> bytearray:
        return bytearray(self.blob(place))

    def _dtype(self, name: str) -> _C.dtype:
        dtype = getattr(_C, name)
        if type(dtype) is not _C.dtype:
            raise ValueError(f"{name} is not a dtype")
        return dtype

    def _device(self, name: str) -> _C.device:
        return _C.device(name)

    def _array(self, content):
        import numpy as np

        name, shape, place = content
        return np.frombuffer(self.blob(place), np.dtype(name)).reshape(shape).copy()

    def _scalar(self, content):
        return self._array(content)[()]

    def _tensor(self, content) -> _C.Tensor:
        import numpy as np

        name, shape, place = content
        dtype = self._dtype(name)
        if name.startswith(("bfloat16", "float8")):
            return _C.tensor(np.frombuffer(self.blob(place), np.uint8), device="cpu").view(dtype).reshape(shape)
        return _C.tensor(np.frombuffer(self.blob(place), np.dtype(name)).reshape(shape), device="cpu")


def encode(value, encoder: _Encoder | None = None) -> bytes:
    """Returns a value as bytes. `encoder` may support further types.

    Raises:
        TypeError: the value, or one that it contains, is of another type than None, bool, int, float, complex, str, bytes,
            list, tuple, dict, set, NumPy array or tensor. Subclasses of these are not accepted.
    """
    encoder = encoder or _Encoder()
    text = json.dumps(encoder.encode(value), separators=(",", ":"), allow_nan=False).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *encoder.blobs])


def decode(data, decoder: Callable[[memoryview], _Decoder] = _Decoder) -> object:
    """Returns the value that encode() encoded. Tensors are on the CPU. `decoder` decodes what the encoder supports.

    Raises:
        ValueError: the bytes are malformed.
    """
    view = memoryview(data)
    try:
        size = int.from_bytes(view[:8], "little")
        if len(view) < 8 or size > len(view) - 8:
            raise ValueError("the text is incomplete")
        return decoder(view[8 + size :]).decode(json.loads(bytes(view[8 : 8 + size])))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"received a malformed object: {error}") from error
