"""Timers of worker processes: requests, clients, the server's loop, and the context manager ``expires``."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

_log = logging.getLogger(__name__)


@dataclasses.dataclass(eq=True, slots=True)
class TimerRequest:
    """A worker sets the timer of a scope, or releases it if the time is negative."""

    worker_id: Any
    scope_id: str
    expiration_time: float

    __hash__ = None


class TimerClient(abc.ABC):
    """Sets and releases the timers of one worker."""

    @abc.abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Sets the timer of a scope to a time of time.time()."""

    @abc.abstractmethod
    def release(self, scope_id: str) -> None:
        """Releases the timer of a scope."""


class RequestQueue(abc.ABC):
    """The queue from which a server reads requests."""

    @abc.abstractmethod
    def size(self) -> int:
        """Returns the number of requests; only get() makes it smaller."""

    @abc.abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Returns at most `size` requests; waits for them at most `timeout` seconds."""


class TimerServer(abc.ABC):
    """Ends workers whose timers have expired, in a thread.

    Args:
        request_queue: of the workers.
        max_interval: how long the thread waits for requests between two checks, in seconds.
        daemon: whether the thread ends with the program.
    """

    def __init__(self, request_queue: RequestQueue, max_interval: float, daemon: bool = True):
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread: threading.Thread | None = None
        self._stop_signaled = False

    @abc.abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Applies requests."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids: set) -> None:
        """Removes all timers of workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """Returns the timers with times up to the deadline, by worker."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """Ends a worker. Returns whether it has ended; a worker that has not is ended at the next check."""

    def _reap_worker_no_throw(self, worker_id: Any) -> bool:
        try:
            return self._reap_worker(worker_id)
        except Exception:  # noqa: BLE001 - an error of a subclass must not end the thread
            _log.exception("cannot end worker %s; its timers are removed", worker_id)
            return True

    def _watchdog_loop(self) -> None:
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:  # noqa: BLE001
                _log.exception("the timer server failed, and continues")

    def _run_watchdog(self) -> None:
        self.register_timers(self._request_queue.get(max(1, self._request_queue.size()), self._max_interval))
        expired = self.get_expired_timers(time.time())
        for worker, timers in expired.items():
            _log.info("worker %s: expired timers %s", worker, [timer.scope_id for timer in timers])
        self.clear_timers({worker for worker in expired if self._reap_worker_no_throw(worker)})

    def start(self) -> None:
        """Starts the thread."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self) -> None:
        """Ends the thread; waits at most `max_interval` seconds for it."""
        self._stop_signaled = True
        if self._watchdog_thread is not None:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


_timer_client: TimerClient | None = None


def configure(timer_client: TimerClient) -> None:
    """Sets the client that ``expires`` uses."""
    global _timer_client
    _timer_client = timer_client


@contextlib.contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None) -> Iterator[None]:
    """The server may end this worker if it stays in the block for longer than `after` seconds.

    Args:
        after: seconds.
        scope: the timer's name, by default the caller's file and line.
        client: by default that of configure().

    Raises:
        RuntimeError: there is no client.
    """
    client = _timer_client if client is None else client
    if client is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = sys._getframe(2)  # this generator is resumed by contextlib
        scope = f"{caller.f_code.co_filename}#{caller.f_lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)
