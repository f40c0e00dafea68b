"""torch.distributed.elastic.timer: ends worker processes that stay in a block for too long.

    server = LocalTimerServer(queue, max_interval=1)   # in the process that starts the workers
    server.start()

    configure(LocalTimerClient(queue))                 # in a worker
    with expires(after=60):
        step()
"""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": "RequestQueue TimerClient TimerRequest TimerServer configure expires",
    "local_timer": "LocalTimerClient LocalTimerServer MultiprocessingRequestQueue",
}

__all__ = [  # noqa: F822 - imported at their first use
    "LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue", "RequestQueue", "TimerClient", "TimerRequest",
    "TimerServer", "configure", "expires",
]  # fmt: skip

_get, __dir__ = lazy_attributes(globals(), None, _NAMES)


def __getattr__(name: str):
    if name in ("FileTimerClient", "FileTimerServer", "FileTimerRequest"):
        raise AttributeError(
            f"torch.distributed.elastic.timer.{name} is not supported: the launcher has no timer; use LocalTimerServer in the "
            "process that starts the workers"
        )
    return _get(name)
