"""torch.distributed.elastic.timer: ends worker processes that stay in a block for too long.

    server = LocalTimerServer(queue, max_interval=1)   # in the process that starts the workers
    server.start()

    configure(LocalTimerClient(queue))                 # in a worker
    with expires(after=60):
        step()
"""

from __future__ import annotations

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer, configure, expires
from .local_timer import LocalTimerClient, LocalTimerServer, MultiprocessingRequestQueue

__all__ = [
    "LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue", "RequestQueue", "TimerClient", "TimerRequest",
    "TimerServer", "configure", "expires",
]  # fmt: skip


def __getattr__(name: str):
    if name in ("FileTimerClient", "FileTimerServer", "FileTimerRequest"):
        raise AttributeError(
            f"torch.distributed.elastic.timer.{name} is not supported: the launcher has no timer; use LocalTimerServer in the "
            "process that starts the workers"
        )
    raise AttributeError(f"module 'torch.distributed.elastic.timer' has no attribute {name!r}")
