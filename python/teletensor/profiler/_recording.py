"""Recording: starts and stops the engine's profiler and the client's log of calls, and decodes what they recorded."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _C, _composites, _connection
from ._device import ACTIVITY, Activity, activities
from ._frames import Frame, match
from ._names import COMPOSITES

MAX_EVENTS = 1 << 20  # limit for the engine's events (48 MB), and for the client's calls (32 MB)
_HEADER = np.dtype(
    [(name, "<u8") for name in ("magic", "event_size", "events", "dropped", "shapes", "names", "frames", "activities",
                                "lost_activities")]
)  # fmt: skip
_EVENT = np.dtype(
    [("start", "<u8"), ("duration", "<u8"), ("allocated", "<i8"), ("instruction", "<u8"), ("site", "<u4"),
     ("shapes", "<u4"), ("op", "<u2"), ("kind", "<u2"), ("depth", "<u2"), ("merged", "<u2")]
)  # fmt: skip
_CALL = np.dtype(
    [("start", "<u8"), ("duration", "<u8"), ("thread", "<u8"), ("site", "<u4"), ("op", "<u2"), ("unused", "<u2")]
)
_FRAME = np.dtype(
    [(name, "<u8") for name in ("sequence", "awaited", "received", "started", "ended", "first_instruction")]
)
_SENT_FRAME = np.dtype([(name, "<u8") for name in ("sequence", "sent", "written", "acknowledged")])
_RANKS = 1 << 31  # Profiler::kRanks
_FUNCTION = np.dtype([(name, "<u8") for name in ("start", "end", "thread", "name")])
_MAGIC = int.from_bytes(b"TTTPROF4"[::-1], "big")


@dataclasses.dataclass
class Annotation:
    """A range of the user's program. Times are time.perf_counter_ns().

    Attributes:
        is_operator: whether PyTorch records the range as an operator; otherwise record_function has named it.
    """

    name: str
    start: int
    thread: int
    is_operator: bool
    end: int = 0


@dataclasses.dataclass
class Recorded:
    """What was recorded. Times are nanoseconds of the client's clock.

    Attributes:
        events: the engine's events in the order of their ends, as _EVENT. `site` and `instruction` link them to `calls`.
        calls: what the client issued, as _CALL; call i is the engine's instruction i.
        shapes: the table to which `shapes` of a kernel's event points.
        names: operators by number.
        nodes: Node::form() by number, for events of nodes.
        functions: calls of public functions in the order of their ends, as _FUNCTION.
        function_names: by number.
        sites: source lines by number.
        frames: that were sent and executed during the recording.
        activities: of GPUs.
        notice: why something of GPUs is missing; may be empty.
        annotations: in the order of their starts.
        start, end: of the recording.
    """

    events: np.ndarray
    calls: np.ndarray
    shapes: np.ndarray
    names: dict[int, str]
    nodes: list[str]
    functions: np.ndarray
    function_names: list[str]
    sites: dict[int, str]
    frames: list[Frame]
    activities: list[Activity]
    notice: str
    annotations: list[Annotation]
    start: int
    end: int

    def issued(self, instruction: int) -> int:
        """The time at which the client issued a call; 0 if it was not logged."""
        return int(self.calls[instruction]["start"]) if instruction < len(self.calls) else 0

    def ranks(self, at: int) -> list[int]:
        """Returns the numbers of dimensions of a kernel's tensor arguments; -1 from the third on if sizes are not recorded."""
        if not at & _RANKS:
            return [len(size) for size in self.sizes(at)[0]]
        known = [at >> 4 & 15, at & 15]
        return (known + [-1] * 13)[: at >> 8 & 15]

    def sizes(self, at: int) -> tuple[list[list[int]], list[list[int]]]:
        """Returns the sizes of a kernel's tensor arguments and results; none if they are not recorded."""
        lists: list[list[list[int]]] = []
        if at == 0 or at & _RANKS:
            return [], []
        for _ in range(2):
            count, found = int(self.shapes[at]), []
            at += 1
            for _ in range(count):
                dims = int(self.shapes[at])
                found.append(self.shapes[at + 1 : at + 1 + dims].tolist())
                at += 1 + dims
            lists.append(found)
        return lists[0], lists[1]


class Recording:
    """A recording in progress of the calls that use the current session. Only one exists at a time.

    Args:
        shapes: whether the sizes of tensors are recorded.
        devices: whether what GPUs execute is recorded.
    """

    def __init__(self, shapes: bool, devices: bool = False):
        self._session = _connection.connection()
        self._offset = _clock_offset()
        self.annotations: list[Annotation] = []
        self._session.start_call_log(MAX_EVENTS)
        _C.ops.profiler_start(shapes, MAX_EVENTS, devices)
        self._session.flush()  # the engine records the frames that begin after the start
        self._former_recorder = _composites.recorder
        _composites.set_recorder(self._composite)
        _C.start_function_log(MAX_EVENTS)
        self._start = time.perf_counter_ns()

    def annotate(self, name: str, is_operator: bool = False) -> Annotation:
        """Begins a range; the caller sets its end."""
        annotation = Annotation(name, time.perf_counter_ns(), threading.get_native_id(), is_operator)
        self.annotations.append(annotation)
        return annotation

    def _composite(self, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls a function that is one operator in PyTorch."""
        ranges = [self.annotate(f"aten::{operator}", is_operator=True) for operator in COMPOSITES.get(name, (name,))]
        try:
            if self._former_recorder is not None:
                return self._former_recorder(name, function, args, kwargs)
            return function(*args, **kwargs)
        finally:
            for annotation in reversed(ranges):
                annotation.end = time.perf_counter_ns()

    def stop(self) -> Recorded:
        """Ends the recording. Waits for the engine.

        Raises:
            RuntimeError: the session was closed while it was recorded.
        """
        end = time.perf_counter_ns()
        functions, function_names = _C.stop_function_log()
        if _composites.recorder == self._composite:
            _composites.set_recorder(self._former_recorder)
        if _connection.connection() is not self._session:
            raise RuntimeError("[profiler] expected the session in which the profile was started, got another one")
        content = _C.ops.profiler_stop().numpy().tobytes()
        calls, sites, sent = self._session.stop_call_log()
        header = np.frombuffer(content, _HEADER, 1)[0]
        if header["magic"] != _MAGIC or header["event_size"] != _EVENT.itemsize:
            raise RuntimeError("[profiler] the engine's profile has another format: its version differs from the client's")
        if header["dropped"]:
            warnings.warn(f"[profiler] {header['dropped']} events were not recorded: the limit is {MAX_EVENTS}", stacklevel=3)
        at = _HEADER.itemsize
        events = np.frombuffer(content, _EVENT, int(header["events"]), at).copy()
        at += events.nbytes
        frames = np.frombuffer(content, _FRAME, int(header["frames"]), at).copy()
        at += frames.nbytes
        records = np.frombuffer(content, ACTIVITY, int(header["activities"]), at).copy()
        at += records.nbytes
        shapes = np.frombuffer(content, "<i8", int(header["shapes"]), at)
        at += shapes.nbytes
        texts = json.loads(content[at:])
        names = {int(number): name for number, name in texts["operators"].items()}
        events["start"] = events["start"].astype(np.int64) - self._offset
        for name in ("awaited", "received", "started", "ended"):
            known = frames[name] != 0
            frames[name][known] = frames[name][known].astype(np.int64) - self._offset
        for name in ("start", "end"):
            records[name] = records[name].astype(np.int64) - self._offset
        for annotation in self.annotations:
            annotation.end = annotation.end or end
        matched = match(frames, np.frombuffer(sent, _SENT_FRAME), self._start)
        on_devices = activities(records, texts["activities"], self._start)
        return Recorded(events, np.frombuffer(calls, _CALL), shapes, names, texts["nodes"],
                        np.frombuffer(functions, _FUNCTION), function_names, sites, matched, on_devices,
                        _notice(texts["notice"], int(header["lost_activities"])), self.annotations, self._start, end)  # fmt: skip


def _notice(text: str, lost: int) -> str:
    parts = [text] if text else []
    if lost:
        parts.append(f"{lost} records of GPU events were lost")
    return "; ".join(parts)


def _clock_offset() -> int:
    """Returns the engine's clock minus this process's, in nanoseconds; 0 on the same host."""
    best, offset = None, 0
    for _ in range(5):
        before = time.perf_counter_ns()
        there = _C.ops.profiler_clock().item()
        after = time.perf_counter_ns()
        if best is None or after - before < best:
            best, offset = after - before, there - (before + after) // 2
    return 0 if abs(offset) <= best else offset
