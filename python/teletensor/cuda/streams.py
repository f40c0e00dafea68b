"""Streams and events.

A session has one stream per GPU, and all Stream objects of the GPU denote this stream. Work that PyTorch might overlap
runs in program order, which is correct for every program that is correct with several streams.
"""

from __future__ import annotations

import contextlib
import itertools

from .. import _C
from .._lazy import defined_by, set_module
from .._options import check_flags, check_kind
from . import device_index
from ._devices import synchronize
from .device_index import device_code, index_of

__all__ = ["Event", "ExternalStream", "Stream", "annotations"]  # noqa: F822 - another module defines one of them

_numbers = itertools.count(1)


class Event:
    """A point in a GPU's work. The GPU reaches the event after all work issued before ``record()``.

    Args:
        enable_timing: allows ``elapsed_time``.
        blocking: has no effect, because waiting never spins.
    """

    _recorded = False

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if interprocess:
            raise NotImplementedError("events cannot be shared between processes")
        if external:
            raise NotImplementedError("[Event] expected external to be False: events cannot be waited for inside a graph")
        check_flags("Event", enable_timing=enable_timing, blocking=blocking)
        self._times = enable_timing
        self._number = next(_numbers)

    def record(self, stream: Stream | None = None) -> None:
        """Sets the event to the current point in program order."""
        _C.ops.event_record(self._number, _C.device_code(stream.device) if stream else device_code(None))
        self._recorded = True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of GPU time from this event to ``end_event``. Waits for both."""
        if not self._times or not end_event._times:
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        return self._elapsed(end_event)

    def _elapsed(self, end_event: Event) -> float:
        return float(_C.ops.event_elapsed(self._number, end_event._number).item())

    def query(self) -> bool:
        """Whether the GPU has reached the event. Makes a round trip to the engine but does not wait for the GPU."""
        return bool(_C.ops.event_passed(self._number).item())

    def synchronize(self) -> None:
        """Waits until the GPU has reached the event."""
        if self._recorded:
            self._elapsed(self)

    def wait(self, stream: Stream | None = None) -> None:
        """Checks its argument and has no other effect: work issued later always runs later."""
        if stream is not None:
            check_kind("Event.wait", "stream", stream, Stream)

    def __del__(self) -> None:
        if self._recorded:
            with contextlib.suppress(Exception):  # the session may have ended
                _C.ops.event_drop(self._number)


class Stream:
    """The session's work on a GPU. All streams of a GPU are equal, so ``priority`` has no effect."""

    def __init__(self, device=None, priority: int = 0) -> None:
        check_kind("Stream", "priority", priority, int)
        self.device = _C.device("cuda", index_of(device))

    @property
    def device_index(self) -> int:
        """The GPU's index."""
        return self.device.index

    def synchronize(self) -> None:
        """Waits until everything issued so far has been executed."""
        synchronize(self.device)

    def query(self) -> bool:
        """Whether everything issued so far has been executed."""
        return self.record_event().query()

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event at the current point and returns it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Checks its argument and has no other effect: work issued later always runs later."""
        check_kind("Stream.wait_event", "event", event, Event)

    def wait_stream(self, stream: Stream) -> None:
        """Checks its argument and has no other effect: a GPU has only one stream."""
        check_kind("Stream.wait_stream", "stream", stream, Stream)

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<teletensor.cuda.Stream device={self.device}>"


def current_stream(device=None) -> Stream:
    """The GPU's stream. All streams of a GPU are equal."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Stream | None) -> None:
    """Makes the stream's GPU the current one, as PyTorch does. None has no effect."""
    if stream is not None:
        device_index.set_device(stream.device)


class StreamContext(device_index.device):
    """``with cuda.stream(s):`` makes the stream's GPU the current one for a block; None has no effect."""

    def __init__(self, stream: Stream | None) -> None:
        super().__init__(None if stream is None else stream.device)


stream = StreamContext

set_module("teletensor.cuda", StreamContext)
__getattr__, __dir__ = defined_by(globals(), "status", "ExternalStream")
