"""Streams and events.

A session has one stream a GPU, so every stream of a program is that one: work that PyTorch might overlap is done in the
program's order, which is right for every program that is right with more streams.
"""

from __future__ import annotations

import contextlib
import itertools

from .. import _C
from .._options import check_flags, check_kind
from . import place
from .place import index_of, wire_number

_numbers = itertools.count(1)


class Event:
    """A point in a GPU's work: what was issued before ``record()``.

    Args:
        enable_timing: whether ``elapsed_time`` takes the event.
        blocking: has no effect, waiting never spins.
    """

    _recorded = False

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("events are not shared between processes")
        check_flags("Event", enable_timing=enable_timing, blocking=blocking)
        self._times = enable_timing
        self._number = next(_numbers)

    def record(self, stream: Stream | None = None) -> None:
        """Sets the event where the program is now."""
        _C.ops.event_record(self._number, wire_number(stream.device if stream else None))
        self._recorded = True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of the GPU's time until ``end_event``. Waits for both."""
        if not self._times or not end_event._times:
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        return self._elapsed(end_event)

    def _elapsed(self, end_event: Event) -> float:
        return float(_C.ops.event_elapsed(self._number, end_event._number).item())

    def query(self) -> bool:
        """Whether the GPU has passed it. A round trip, without waiting for the GPU."""
        return bool(_C.ops.event_passed(self._number).item())

    def synchronize(self) -> None:
        """Waits until the GPU has passed it."""
        if self._recorded:
            self._elapsed(self)

    def wait(self, stream: Stream | None = None) -> None:
        """Has no effect: later work is done later in any case."""
        if stream is not None:
            check_kind("Event.wait", "stream", stream, Stream)

    def __del__(self) -> None:
        if self._recorded:
            with contextlib.suppress(Exception):  # the session may be gone
                _C.ops.event_drop(self._number)


class Stream:
    """The session's order of work on a GPU. All streams of a GPU are the same one, so that ``priority`` has no effect."""

    def __init__(self, device=None, priority: int = 0) -> None:
        check_kind("Stream", "priority", priority, int)
        self.device = _C.device("cuda", index_of(device))

    @property
    def device_index(self) -> int:
        """The GPU's number."""
        return self.device.index

    def synchronize(self) -> None:
        """Waits until everything issued so far has been done."""
        from . import synchronize

        synchronize(self.device)

    def query(self) -> bool:
        """Whether everything issued so far has been done."""
        return self.record_event().query()

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this point."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Has no effect: later work is done later in any case."""
        check_kind("Stream.wait_event", "event", event, Event)

    def wait_stream(self, stream: Stream) -> None:
        """Has no effect: there is one order."""
        check_kind("Stream.wait_stream", "stream", stream, Stream)

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<teletensor.cuda.Stream device={self.device}>"


def current_stream(device=None) -> Stream:
    """The GPU's stream."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Stream | None) -> None:
    """Makes the stream's GPU the current one, as PyTorch does; there is one stream per GPU. None changes nothing."""
    if stream is not None:
        place.set_device(stream.device)


class StreamContext(place.device):
    """``with cuda.stream(s):`` the block's work goes to the stream's GPU where ``"cuda"`` names none; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        super().__init__(None if stream is None else stream.device)


stream = StreamContext
