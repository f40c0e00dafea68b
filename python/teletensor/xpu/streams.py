"""torch.xpu.streams: queues of Intel GPUs."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(globals(), "the engine has no such device; it computes on CPUs and CUDA GPUs", classes="Event Stream")
