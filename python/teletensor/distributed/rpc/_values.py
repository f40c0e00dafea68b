"""The values that messages contain: those of the object collectives, RRefs and registered functions.

Tensors are not part of a message: the sender's engine offers them, and the receiver's engine pulls them (``_pull.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._object_encoding import _Decoder, _Encoder, decode, encode
from . import _registry

if TYPE_CHECKING:
    from ._channel import Incoming, Outgoing


class _ValueEncoder(_Encoder):
    def __init__(self, channel: Outgoing):
        super().__init__()
        self._channel = channel

    def encode(self, value):
        from ._rref import RRef

        if isinstance(value, RRef):
            return {"rref": self._channel.put_rref(value)}
        return super().encode(value)

    def _tensor(self, tensor):
        return self._channel.put_tensor(tensor)

    def _numpy(self, value):
        if callable(value):
            return {"function": _registry.name_of(value)}
        return super()._numpy(value)


class _ValueDecoder(_Decoder):
    KINDS = _Decoder.KINDS | {"rref", "function"}

    def __init__(self, blobs: memoryview, channel: Incoming):
        super().__init__(blobs)
        self._channel = channel

    def _tensor(self, content):
        return self._channel.get_tensor(content)

    def _rref(self, content):
        return self._channel.get_rref(content)

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
