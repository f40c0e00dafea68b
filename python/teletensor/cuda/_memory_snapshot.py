"""Snapshots of a device's memory and its history, in the format of PyTorch's memory visualiser.

The format is that of ``torch.cuda.memory._snapshot()``; ``torch/cuda/_memory_viz.py`` and pytorch.org/memory_viz read it.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _C, _connection
from .device_index import device_code, index_of

_HEADER = np.dtype([(name, "<u8") for name in ("magic", "blocks", "events", "dropped", "time", "reserved")])
_BLOCK = np.dtype(
    [(name, "<u8") for name in ("segment", "offset", "size", "requested", "pool", "stream")]
    + [("site", "<u4"), ("state", "<u2"), ("own", "<u2")]
)
_EVENT = np.dtype([("time", "<u8"), ("address", "<u8"), ("bytes", "<u8"), ("site", "<u4"), ("kind", "<u2"), ("device", "<u2")])
_MAGIC = int.from_bytes(b"TTMEMOR1"[::-1], "big")
_STATES = ("inactive", "active_allocated", "active_awaiting_free")
_ALLOCATION, _FREE, _OUT_OF_MEMORY = 0, 1, 2
_SMALL = 1 << 20  # bytes of the largest block of a segment for small ones

MAX_ENTRIES = 1 << 18  # events that are kept by default: 8 MiB of the session's memory
_LARGEST = 1 << 22
_settings: dict[str, Any] = {"trace": True, "frames": True, "skip": frozenset(), "devices": None}


def record_history(enabled: str | None, context: str | None, stacks: str, max_entries: int, clear_history: bool,
                   skip_actions: Iterable[str] | None, device=None) -> None:  # fmt: skip
    """Starts or stops recording; see ``cuda.memory._record_memory_history``."""
    if enabled not in (None, "state", "all"):
        raise RuntimeError(f"[_record_memory_history] expected enabled to be None, 'state' or 'all', got {enabled!r}")
    if context not in (None, "state", "alloc", "all"):
        raise RuntimeError(f"[_record_memory_history] expected context to be None, 'state', 'alloc' or 'all', got {context!r}")
    if stacks not in ("python", "all"):
        raise RuntimeError(f"[_record_memory_history] expected stacks to be 'python' or 'all', got {stacks!r}")
    if max_entries <= 0:
        raise ValueError(f"[_record_memory_history] expected max_entries > 0, got {max_entries}")
    kept = MAX_ENTRIES if max_entries == sys.maxsize else min(max_entries, _LARGEST)
    _settings["devices"] = None if device is None else [code for _, code in _codes(device)]
    _settings.update(trace=enabled != "state", frames=context is not None, skip=frozenset(skip_actions or ()))
    _C.ops.memory_history(0 if enabled is None else kept, clear_history)


class _Snapshot:
    """A device's blocks and the session's events, as the engine returned them."""

    def __init__(self, code: int):
        content = _C.ops.memory_snapshot(code).numpy().tobytes()
        header = np.frombuffer(content, _HEADER, 1)[0]
        if header["magic"] != _MAGIC:
            raise RuntimeError("[memory_snapshot] the engine's snapshot has another format: its version differs from the client's")
        self.time = int(header["time"])
        self.blocks = np.frombuffer(content, _BLOCK, int(header["blocks"]), _HEADER.itemsize)
        self.events = np.frombuffer(content, _EVENT, int(header["events"]), _HEADER.itemsize + self.blocks.nbytes)
        self._frames: dict[int, list[dict]] = {0: []}

    def frames(self, site: int) -> list[dict]:
        """The source line with a number, as a list of one frame."""
        if not _settings["frames"]:
            return []
        if site not in self._frames:
            text = _connection.connection().site_name(site)
            found = re.fullmatch(r"(.*):(\d+)(?: in (.*))?", text)
            self._frames[site] = [
                {"filename": found[1], "line": int(found[2]), "name": found[3] or "<module>"}
            ] if found else []  # fmt: skip
        return self._frames[site]

    def segments(self, device: int) -> list[dict]:
        """The segments with their blocks. The mapped parts of an expandable segment are segments of their own."""
        segments: list[dict] = []
        for block in self.blocks:
            address = int(block["segment"]) + int(block["offset"])
            last = segments[-1] if segments else None
            if last is None or last["_of"] != int(block["segment"]) or last["address"] + last["total_size"] != address:
                last = self._segment(block, address, device)
                segments.append(last)
            self._add(last, block, address)
        for segment in segments:
            largest = max(block["size"] for block in segment["blocks"])
            segment["segment_type"] = "small" if largest <= _SMALL and segment["total_size"] <= 2 * _SMALL else "large"
            del segment["_of"]
        return segments

    def _segment(self, block: np.void, address: int, device: int) -> dict:
        return {
            "_of": int(block["segment"]), "device": device, "address": address, "total_size": 0, "allocated_size": 0,
            "active_size": 0, "requested_size": 0, "stream": int(block["stream"]), "segment_type": "large",
            "segment_pool_id": (0, int(block["pool"])), "is_expandable": False, "frames": [], "blocks": [],
        }  # fmt: skip

    def _add(self, segment: dict, block: np.void, address: int) -> None:
        size, state = int(block["size"]), _STATES[int(block["state"])]
        requested = (int(block["requested"]) or size) if state == "active_allocated" else 0
        made = {"address": address, "size": size, "requested_size": requested, "state": state,
                "frames": self.frames(int(block["site"]))}  # fmt: skip
        segment["blocks"].append(made)
        segment["total_size"] += size
        if state != "inactive":
            segment["active_size"] += size
            segment["requested_size"] += requested
        if state == "active_allocated":
            segment["allocated_size"] += size

    def trace(self, device: int, code: int) -> list[dict]:
        """The events of a device (0: the CPU; 1 + the index of a GPU) as entries of the visualiser."""
        entries = []
        for event in self.events[self.events["device"] == code]:
            kind, size = int(event["kind"]), int(event["bytes"])
            entry = {"addr": int(event["address"]), "size": size, "stream": 0, "time_us": int(event["time"]),
                     "frames": self.frames(int(event["site"])), "device": device}  # fmt: skip
            if kind == _ALLOCATION:
                entries.append({"action": "alloc", **entry})
            elif kind == _FREE:
                entries += [{"action": action, **entry} for action in ("free_requested", "free_completed")]
            else:
                entries.append({"action": "oom", **entry, "device_free": 0})
        entries.append({"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": self.time, "frames": []})
        return [entry for entry in entries if entry["action"] not in _settings["skip"]]


def _codes(device) -> list[tuple[int, int]]:
    """The numbers of a device in a snapshot and in instructions; of all GPUs, or the CPU if there is none, for None."""
    if device is not None and not isinstance(device, int) and _C.device(device).type == "cpu":
        return [(0, 0)]
    if device is not None:
        return [(index_of(device), device_code(device))]
    devices = [d["device"] for d in _connection.connection().engine()["devices"]]
    count = sum(name.startswith("cuda") for name in devices)
    return [(index, device_code(index)) for index in range(count)] or [(0, 0)]


def segments(device=None, include_traces: bool = True) -> list[dict]:
    """Returns the segments of the pools; see ``cuda.memory_snapshot``."""
    found = []
    for number, code in _codes(device):
        for segment in _Snapshot(code).segments(number):
            if not include_traces:
                segment["frames"] = []
                for block in segment["blocks"]:
                    block["frames"] = []
            found.append(segment)
    return found


def snapshot(device=None) -> dict:
    """Returns segments and traces; see ``cuda.memory._snapshot``."""
    found: list[dict] = []
    traces: list[list[dict]] = []
    for number, code in _codes(device):
        taken = _Snapshot(code)
        found += taken.segments(number)
        traces += [[] for _ in range(number + 1 - len(traces))]
        if _settings["trace"] and (_settings["devices"] is None or code in _settings["devices"]):
            traces[number] = taken.trace(number, 0 if code == 0 else 1 + number)
    return {"segments": found, "device_traces": traces, "allocator_settings": {}, "external_annotations": []}


def dump(filename: str, taken: dict) -> None:
    """Writes a snapshot as a pickle, which the visualiser reads."""
    with open(filename, "wb") as file:
        pickle.dump(taken, file)
