"""torch.xpu.streams: queues of Intel GPUs."""

from __future__ import annotations

from .._absent_device import classes

classes(
    globals(), "xpu", RuntimeError, "Tried to instantiate dummy base class {name}", Stream=lambda device=None, priority=0, **kwargs: 0,
    Event=lambda enable_timing=False, blocking=False, interprocess=False: 0,
)  # fmt: skip
