"""Timers of workers on this host, through a queue of multiprocessing. A worker is identified by its process id."""

from __future__ import annotations

import logging
import os
import queue
import signal
import time

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]

_log = logging.getLogger(__name__)


class LocalTimerClient(TimerClient):
    """Sets the timers of this process. `mp_queue`: that of the server."""

    def __init__(self, mp_queue):
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Requests in a queue of multiprocessing."""

    def __init__(self, mp_queue):
        self._mp_queue = mp_queue

    def size(self) -> int:
        return self._mp_queue.qsize()

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        end, requests = time.monotonic() + timeout, []
        while len(requests) < size:
            try:
                requests.append(self._mp_queue.get(timeout=max(0.0, end - time.monotonic())))
            except queue.Empty:
                break
        return requests


class LocalTimerServer(TimerServer):
    """Kills processes on this host whose timers have expired. Arguments: see TimerServer."""

    def __init__(self, mp_queue, max_interval: float = 60, daemon: bool = True):
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers: dict[tuple[int, str], TimerRequest] = {}

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        for request in timer_requests:
            key = (request.worker_id, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_ids: set[int]) -> None:
        self._timers = {key: timer for key, timer in self._timers.items() if key[0] not in worker_ids}

    def get_expired_timers(self, deadline: float) -> dict[int, list[TimerRequest]]:
        expired: dict[int, list[TimerRequest]] = {}
        for timer in self._timers.values():
            if timer.expiration_time <= deadline:
                expired.setdefault(timer.worker_id, []).append(timer)
        return expired

    def _reap_worker(self, worker_id: int) -> bool:
        try:
            os.kill(worker_id, signal.SIGKILL)
        except ProcessLookupError:
            _log.info("process %s has ended already", worker_id)
        except OSError:
            _log.exception("cannot kill process %s", worker_id)
            return False
        return True
