"""torch.cpu: the engine's CPU as a device with the interface of torch.cuda. A session has one queue of work for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import MappingProxyType

from .. import _connection
from .._connection import synchronize as _synchronize
from .._lazy import lazy_attributes

__all__ = [  # noqa: F822 - amp is imported at its first use
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities",
    "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Returns True."""
    return True


def is_initialized() -> bool:
    """Returns True."""
    return True


def device_count() -> int:
    """Returns 1."""
    return 1


def current_device() -> str:
    """Returns "cpu"."""
    return "cpu"


def set_device(device) -> None:
    """Has no effect: there is one CPU device."""


def synchronize(device=None) -> None:
    """Waits until all work issued so far has completed, and raises its errors. PyTorch's CPU has nothing to wait for."""
    _synchronize()


def get_capabilities() -> MappingProxyType:
    """The engine's description of its CPU; PyTorch's keys depend on the processor too."""
    devices = _connection.connection().engine()["devices"]
    return MappingProxyType(dict(next(d for d in devices if d["device"].startswith("cpu"))))


class Stream:
    """A queue of work. All streams are the session's one queue, which runs in program order."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream) -> None:
        """Has no effect: work runs in program order."""

    def record_event(self) -> None:
        """Has no effect."""

    def wait_event(self, event) -> None:
        """Has no effect: work runs in program order."""


class Event:
    """An event that has always occurred, as PyTorch's; torch.Event("cpu") measures the engine's time."""

    def query(self) -> bool:
        """Returns True."""
        return True

    def record(self, stream=None) -> None:
        """Has no effect."""

    def synchronize(self) -> None:
        """Has no effect."""

    def wait(self, stream=None) -> None:
        """Has no effect."""


_current = Stream()


def current_stream(device=None) -> Stream:
    """Returns the stream selected last by stream()."""
    return _current


class StreamContext(AbstractContextManager):
    """Makes a stream the current one in a ``with`` block."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        global _current
        self._before = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(self, *exc) -> None:
        global _current
        _current = self._before


def stream(stream: Stream | None) -> StreamContext:
    """Returns a context that makes a stream the current one."""
    return StreamContext(stream)

__getattr__, __dir__ = lazy_attributes(globals(), ("amp",))
