"""Writes events in Chrome's trace event format, which Perfetto and chrome://tracing open.

Source: "Trace Event Format", the Chromium project.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path

from ._device import DeviceType
from ._frames import Frame

# Numbers of processes and threads in the trace. Those of GPUs are their indices, and their threads are streams, as in
# PyTorch's traces; the client has the number of its process. Others are larger than any number of a process.
_ENGINE = 1 << 22
_LINK = _ENGINE + 1
_EXECUTOR, _RANGES, _COPIES = 1, 2, 3


def write(path: str, events: Iterable, metadata: dict[str, str], memory: Iterable[tuple[float, int]] = (),
          frames: Iterable[Frame] = ()) -> None:  # fmt: skip
    """Writes a trace: what the client issued, its frames on their way, what the engine and GPUs executed, and memory.

    Args:
        path: compressed if it ends with ".gz".
        metadata: texts that are added to the trace.
        memory: microseconds and bytes.
        frames: what the client sent.
    """
    client = os.getpid()
    entries = [
        _name("process_name", _ENGINE, 0, "engine"), _name("thread_name", _ENGINE, _EXECUTOR, "executor"),
        _name("process_name", client, 0, "client"),
    ]  # fmt: skip
    events = list(events)
    entries += _device_entries([event for event in events if event.device_type == DeviceType.CUDA])
    for event in events:
        if event.device_type == DeviceType.CUDA:
            continue
        details = {"Input Dims": event.input_shapes} if event.input_shapes else {}
        if event.stack:
            details["Call stack"] = "; ".join(event.stack)
        if event.fused > 1:
            details["operators in the same loop"] = event.fused
        if event.flops:
            details["flops"] = event.flops
        kind = "user_annotation" if event.is_user_annotation else "cpu_op"
        if event.client_range is not None:
            entries.append(_slice(event.name, kind if event.is_user_annotation else "issue", client, event.thread,
                                  event.client_range, {}))  # fmt: skip
        if event.is_range and not event.cpu_children:
            continue
        thread = _RANGES if event.is_user_annotation else _EXECUTOR
        entries.append(_slice(event.name, kind, _ENGINE, thread, event.time_range, details))
        if event.client_range is not None and not event.is_user_annotation:
            arrow = {"name": "issue", "cat": "issue", "id": event.id}
            entries.append({"ph": "s", **arrow, "pid": client, "tid": event.thread, "ts": event.client_range.start})
            entries.append({"ph": "f", "bp": "e", **arrow, "pid": _ENGINE, "tid": thread, "ts": event.time_range.start})
    entries.append(_name("thread_name", _ENGINE, _RANGES, "ranges"))
    entries += _frames(frames)
    for time, size in memory:
        entries.append({"ph": "C", "name": "memory", "pid": _ENGINE, "ts": time, "args": {"bytes": size}})
    content = {"schemaVersion": 1, "displayTimeUnit": "ms", **metadata, "traceEvents": entries}
    opener = gzip.open if str(path).endswith(".gz") else open
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    with opener(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)


def _device_entries(events: list) -> list[dict]:
    """A row per stream of a GPU, the calls that launched its work, and arrows from the call, or from the operator."""
    entries, calls = [], set()
    for device in sorted({event.device_index for event in events}):
        entries += [
            _name("process_name", device, 0, f"GPU {device}"),
            {"ph": "M", "name": "process_labels", "pid": device, "tid": 0, "args": {"labels": f"GPU {device}"}},
            {"ph": "M", "name": "process_sort_index", "pid": device, "tid": 0, "args": {"sort_index": _LINK + 1 + device}},
        ]
    for device, stream in sorted({(event.device_index, event.activity.stream) for event in events}):
        entries.append(_name("thread_name", device, stream, f"stream {stream}"))
    for event in events:
        activity, call = event.activity, event.activity.call
        details = activity.details() | ({"operator": event.launched_by.name} if event.launched_by else {})
        entries.append(_slice(event.name, activity.category, event.device_index, activity.stream, event.time_range, details))
        thread = _EXECUTOR if event.launched_by else _COPIES
        if call is not None and call.correlation not in calls:
            calls.add(call.correlation)
            entries.append({"ph": "X", "name": call.name, "cat": call.category, "pid": _ENGINE, "tid": thread,
                            "ts": call.start, "dur": max(0.0, call.end - call.start), "args": call.details()})  # fmt: skip
        begin = call.start if call is not None else event.launched_by.time_range.start if event.launched_by else None
        if begin is None:
            continue
        # A call that launched several kernels has an arrow to each.
        arrow = {"name": "ac2g", "cat": "ac2g", "id": f"{activity.correlation}.{event.id}"}
        entries.append({"ph": "s", **arrow, "pid": _ENGINE, "tid": thread, "ts": begin})
        entries.append({"ph": "f", "bp": "e", **arrow, "pid": event.device_index, "tid": activity.stream,
                        "ts": event.time_range.start})  # fmt: skip
    if any(event.launched_by is None for event in events):
        entries.append(_name("thread_name", _ENGINE, _COPIES, "copies"))
    return entries


def _frames(frames: Iterable[Frame]) -> list[dict]:
    """One bar per frame, from the client to the client, with its stages in it. Frames in flight together overlap."""
    entries = [_name("process_name", _LINK, 0, "link")]
    for frame in frames:
        end = frame.ended if frame.acknowledged is None else frame.acknowledged
        times = {
            "frame": (frame.sent, end), "wire": (frame.sent, frame.received),
            "queue": (frame.received, frame.read), "prepare": (frame.read, frame.started),
            "execute": (frame.started, frame.ended), "reply": (frame.ended, end),
        }  # fmt: skip
        details = {"sequence": frame.sequence, "arrival": "estimated" if frame.estimated else "measured",
                   "first instruction": frame.first_instruction}  # fmt: skip
        for name, (start, stop) in times.items():
            if stop <= start:
                continue
            # "local": the number identifies the frame in its process only.
            event = {"name": name, "cat": "frame", "id2": {"local": hex(frame.sequence)}, "pid": _LINK, "tid": 0}
            entries.append({"ph": "b", **event, "ts": start, "args": details if name == "frame" else {}})
            entries.append({"ph": "e", **event, "ts": stop})
    return entries


def _slice(name: str, category: str, process: int, thread: int, range_, details: dict) -> dict:
    return {"ph": "X", "name": name, "cat": category, "pid": process, "tid": thread, "ts": range_.start,
            "dur": max(0.0, range_.elapsed_us()), "args": details}  # fmt: skip


def _name(kind: str, process: int, thread: int, name: str) -> dict:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
