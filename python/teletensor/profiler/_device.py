"""What GPUs executed during a profile: kernels, copies and fills, with the call that launched each of them."""

from __future__ import annotations

import collections
import dataclasses
import enum

import numpy as np

ACTIVITY = np.dtype(
    [("start", "<u8"), ("end", "<u8"), ("bytes", "<u8"), ("launch", "<u4"), ("correlation", "<u4"), ("context", "<u4"),
     ("stream", "<u4"), ("grid", "<u4", 3), ("block", "<u4", 3), ("static_shared", "<u4"), ("dynamic_shared", "<u4"),
     ("name", "<u4"), ("device", "<u4"), ("kind", "<u2"), ("registers", "<u2"), ("unused", "<u4")]
)  # fmt: skip
_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime")  # by DeviceActivity::Kind
NO_EVENT = 0xFFFFFFFF
UNNAMED = "GPU work"  # of an activity that CUDA events recorded

Kernel = collections.namedtuple("Kernel", ["name", "device", "duration"])


class DeviceType(enum.Enum):
    """Where an event was executed."""

    CPU = 0
    CUDA = 1


@dataclasses.dataclass
class Activity:
    """A kernel, a copy or a fill on a GPU, or the host's call that launched one. Times are microseconds.

    Attributes:
        category: "kernel", "gpu_memcpy", "gpu_memset" or "cuda_runtime", as in PyTorch's traces.
        correlation: the same number in a call and in what it launched.
        launch: position of the engine's event that launched it; None for copies of transfers.
        call: what launched it; None if it was not recorded.
    """

    category: str
    name: str
    start: float
    end: float
    device: int
    context: int
    stream: int
    correlation: int
    bytes: int
    grid: list[int]
    block: list[int]
    registers: int
    shared_memory: int
    launch: int | None
    call: Activity | None = None

    def details(self) -> dict:
        """Returns its arguments in a trace, with PyTorch's names."""
        if self.category == "cuda_runtime":
            return {"correlation": self.correlation}
        known = {"device": self.device, "context": self.context, "stream": self.stream, "correlation": self.correlation}
        if self.category == "kernel" and not any(self.block):  # of CUDA events
            return known
        if self.category == "kernel":
            return {**known, "registers per thread": self.registers, "shared memory": self.shared_memory, "grid": self.grid,
                    "block": self.block}  # fmt: skip
        known["bytes"] = self.bytes
        duration = self.end - self.start
        if duration > 0:
            known["memory bandwidth (GB/s)"] = self.bytes / duration / 1e3
        return known


def activities(records: np.ndarray, names: list[str], start: int) -> list[Activity]:
    """Returns what GPUs executed, in the order of the starts.

    Args:
        records: as ACTIVITY, with times in the client's clock.
        names: of the kernels and calls.
        start: of the profile, in nanoseconds.
    """
    calls, found = {}, []
    for record in records:
        launch = int(record["launch"])
        made = Activity(
            _CATEGORIES[record["kind"]], names[record["name"]], (int(record["start"]) - start) / 1e3,
            (int(record["end"]) - start) / 1e3, int(record["device"]), int(record["context"]), int(record["stream"]),
            int(record["correlation"]), int(record["bytes"]), record["grid"].tolist(), record["block"].tolist(),
            int(record["registers"]), int(record["static_shared"]) + int(record["dynamic_shared"]),
            None if launch == NO_EVENT else launch,
        )  # fmt: skip
        if made.category == "cuda_runtime":
            calls[made.correlation] = made
        else:
            found.append(made)
    for made in found:
        made.call = calls.get(made.correlation)
    return found
