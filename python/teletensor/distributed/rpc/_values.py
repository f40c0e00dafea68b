"""The values that messages contain: those of the object collectives, RRefs, RemoteModules and registered functions. In a
program that was written for PyTorch also objects of the program's own classes and modules, as ``torch.load`` restores them.

Tensors are not part of a message: the sender's engine offers them, and the receiver's engine pulls them (``_pull.py``).
"""

from __future__ import annotations

import inspect
import io
from typing import TYPE_CHECKING

from .._object_encoding import _Decoder, _Encoder, decode, encode
from . import _registry
from ._rref import RRef

if TYPE_CHECKING:
    from ._channel import Incoming, Outgoing


remote_module: type | None = None  # RemoteModule, which nn.api.remote_module sets


class _ValueEncoder(_Encoder):
    def __init__(self, channel: Outgoing):
        super().__init__()
        self._channel = channel

    def encode(self, value):
        if isinstance(value, RRef):
            return {"rref": self._channel.put_rref(value)}
        if remote_module is not None and isinstance(value, remote_module):
            return {"remote_module": [value.on, value.device, self._channel.put_rref(value.module_rref)]}
        return super().encode(value)

    def _tensor(self, tensor):
        return self._channel.put_tensor(tensor)

    def _numpy(self, value):
        is_function = inspect.isroutine(value) or inspect.isclass(value)
        if _registry.runs_as_torch() and not is_function and _is_object(value):
            from ...serialization import save

            content = io.BytesIO()
            save(value, content)
            return {"object": self.blob(content.getvalue())}
        if callable(value):
            return {"function": _registry.name_of(value)}
        return super()._numpy(value)


def _is_object(value: object) -> bool:
    """Whether torch.load would create the object: one of a module, or of a class of the program."""
    from ...serialization._program import may_create

    return may_create(type(value))


class _ValueDecoder(_Decoder):
    KINDS = _Decoder.KINDS | {"rref", "function", "object", "remote_module"}

    def __init__(self, blobs: memoryview, channel: Incoming):
        super().__init__(blobs)
        self._channel = channel

    def _tensor(self, content):
        return self._channel.get_tensor(content)

    def _rref(self, content):
        return self._channel.get_rref(content)

    def _object(self, place):
        if not _registry.runs_as_torch():
            raise ValueError("expected no object: this worker's program does not import torch")
        from ...serialization import load

        return load(io.BytesIO(bytes(self.blob(place))), map_location="cpu", weights_only=False)

    def _remote_module(self, content):
        on, device, rref = content
        if not isinstance(on, str | int) or not isinstance(device, str):
            raise ValueError("expected the worker and device of a RemoteModule")
        place = on if isinstance(on, str) else f"rank:{on}"
        return remote_module.init_from_module_rref(f"{place}/{device}", self._channel.get_rref(rref))

    def _function(self, name):
        if not isinstance(name, str):
            raise ValueError(f"expected the name of a function, got {name!r:.100}")
        return _registry.function_of(name)


def encode_message(message: list, channel: Outgoing) -> bytes:
    """Returns a message as bytes.

    Raises:
        TypeError: a value in it is of a type that cannot be sent.
        ValueError: a function in it is not registered.
    """
    return encode(message, _ValueEncoder(channel))


def decode_message(data: bytes, channel: Incoming) -> list:
    """The inverse of encode_message().

    Raises:
        ValueError: the bytes are malformed.
        PermissionError: a function in it is not registered here.
    """
    return decode(data, lambda blobs: _ValueDecoder(blobs, channel))
