"""Threads of a worker: a pool that runs the functions other workers call, and one thread for timeouts and releases."""

from __future__ import annotations

import heapq
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable

from ..._threads import Thread

_log = logging.getLogger("teletensor.distributed.rpc")


class Pool:
    """Runs functions in at most `size` threads, which start when they are needed."""

    def __init__(self, size: int, name: str):
        self._size, self._name = size, name
        self._tasks: queue.SimpleQueue[Callable | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._unfinished = 0

    def submit(self, task: Callable[[], None]) -> None:
        with self._lock:
            self._unfinished += 1
            if self._unfinished > len(self._threads) and len(self._threads) < self._size:
                thread = Thread(self._run, f"{self._name}-{len(self._threads)}")
                self._threads.append(thread)
                thread.start()
        self._tasks.put(task)

    def stop(self) -> None:
        """Ends the threads when they have run everything submitted. Does not wait."""
        for _ in self._threads:
            self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                _log.exception("error in a thread of torch.distributed.rpc")
            del task
            with self._lock:
                self._unfinished -= 1


class Timers:
    """Calls functions at given times, and others as soon as possible, in one thread. Functions must not block.

    ``soon`` may be called by a destructor: it takes no lock.
    """

    def __init__(self):
        self._soon: queue.SimpleQueue[Callable | None] = queue.SimpleQueue()
        self._heap: list[tuple[float, int, Callable]] = []  # used by the thread only
        self._numbers = itertools.count()
        self._thread = Thread(self._run, "rpc-timers")
        self._thread.start()

    def soon(self, function: Callable[[], None]) -> None:
        self._soon.put(function)

    def after(self, seconds: float, function: Callable[[], None]) -> None:
        deadline = time.monotonic() + seconds
        self._soon.put(lambda: heapq.heappush(self._heap, (deadline, next(self._numbers), function)))

    def wait(self) -> None:
        """Waits until everything passed to soon() before has run."""
        passed = threading.Event()
        self.soon(passed.set)
        passed.wait()

    def stop(self) -> None:
        self._soon.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            wait = max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else None
            try:
                function = self._soon.get(timeout=wait)
            except queue.Empty:
                function = heapq.heappop(self._heap)[2]
            if function is None:
                return
            try:
                function()
            except Exception:
                _log.exception("error in a thread of torch.distributed.rpc")
            del function
