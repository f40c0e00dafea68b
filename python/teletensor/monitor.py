"""torch.monitor: events, handlers that receive them, and statistics that log an event per interval."""

from __future__ import annotations

import datetime
import enum
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

__all__ = [
    "Aggregation", "COUNT", "Event", "EventHandlerHandle", "MAX", "MEAN", "MIN", "STAT_EVENT", "SUM", "Stat",
    "TensorboardEventHandler", "VALUE", "data_value_t", "log_event", "register_event_handler", "unregister_event_handler",
]  # fmt: skip

STAT_EVENT = "torch.monitor.Stat"
data_value_t = Union[int, float, bool, str]
_ = TYPE_CHECKING  # PyTorch exports it


class Aggregation(enum.Enum):
    """How a Stat combines the values of an interval."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation
_COMBINE: dict[Aggregation, Callable[[list[float]], float]] = {
    VALUE: lambda values: values[-1], MEAN: lambda values: sum(values) / len(values), COUNT: lambda values: float(len(values)),
    SUM: sum, MAX: max, MIN: min,
}  # fmt: skip


class Event:
    """An event: a name, a time, and data by name."""

    def __init__(self, name: str, timestamp: datetime.datetime, data: Mapping[str, data_value_t]):
        if not isinstance(timestamp, datetime.datetime):
            raise TypeError(f"Event(): expected timestamp to be a datetime, got {type(timestamp).__name__}")
        for key, value in data.items():
            if not isinstance(value, (int, float, str)):
                raise TypeError(f"Event(): expected data[{key!r}] to be a number or text, got {type(value).__name__}")
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """A registered handler."""

    def __init__(self, handler: Callable[[Event], None]):
        self._handler = handler


_handles: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Calls a function with each later event."""
    handle = EventHandlerHandle(callback)
    _handles.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Removes an event handler."""
    if handler in _handles:
        _handles.remove(handler)


def log_event(event: Event) -> None:
    """Passes an event to all handlers."""
    for handle in list(_handles):
        handle._handler(event)


class Stat:
    """Collects values and logs an event with their aggregations per interval.

    Args:
        window_size: the interval. Its event is logged by the first value after it.
        max_samples: an interval ends early after this many values; further ones are dropped until the next interval.
    """

    def __init__(self, name: str, aggregations: list[Aggregation], window_size: datetime.timedelta, max_samples: int = 2**63 - 1):
        self.name, self._aggregations = name, list(aggregations)
        self._seconds, self._max_samples = window_size.total_seconds(), max_samples
        self._values: list[float] = []
        self._last = dict.fromkeys(self._aggregations, 0.0)
        self._window, self._is_full = self._now(), False
        self._lock = threading.Lock()

    def _now(self) -> int:
        return int(time.monotonic() / self._seconds)

    @property
    def count(self) -> int:
        """The number of values of the present interval."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Adds a value."""
        with self._lock:
            window = self._now()
            if window != self._window:
                self._finish()
                self._window, self._is_full = window, False
            if self._is_full:
                return
            self._values.append(float(v))
            if len(self._values) >= self._max_samples:
                self._finish()
                self._is_full = True

    def get(self) -> dict[Aggregation, float]:
        """The aggregations of the last complete interval; 0 before."""
        return dict(self._last)

    def _finish(self) -> None:
        """Logs the event of the present interval."""
        if not self._values:
            return
        self._last = {kind: float(_COMBINE[kind](self._values)) for kind in self._aggregations}
        self._values = []
        data = {f"{self.name}.{kind.name.lower()}": value for kind, value in self._last.items()}
        log_event(Event(STAT_EVENT, datetime.datetime.now(), data))

    def __del__(self) -> None:
        self._finish()


class TensorboardEventHandler:
    """A handler that writes the numbers of Stats to a SummaryWriter."""

    def __init__(self, writer: Any):
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
