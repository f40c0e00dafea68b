"""A thread that writes captures to files after the calls that captured have returned.

The thread waits until the result of the call has probably been read, and pauses for other threads after each fraction of a
millisecond, so that the program waits for Python's lock as briefly. It ends when there is nothing to write. The end of the
program waits for it; a process that is killed, or that ends with os._exit(), loses captures that are not written yet. A child
of fork() leaves them to its parent.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable

_SECONDS_UNTIL_WRITE = 0.1


class _Stores:
    """What is to be written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self.at_once = threading.Event()

    def add(self, write: Callable[[], None]) -> None:
        if not threading.main_thread().is_alive():  # the program ends, and waits for no more threads
            write()
            return
        with self._lock:
            self._waiting.append(write)
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="teletensor: captures")
            try:
                self._thread.start()
                return
            except RuntimeError:  # the process may have no more threads
                self._thread = None
        self._write()

    def _run(self) -> None:
        self.at_once.wait(_SECONDS_UNTIL_WRITE)
        self._write()

    def _write(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                write = self._waiting.popleft()
            write()

    def finish(self) -> None:
        """Waits until all is written."""
        with self._lock:  # which add() holds until the thread has started
            thread = self._thread
        if thread is not None:
            self.at_once.set()
            thread.join()
            self.at_once.clear()


_stores = _Stores()


def add(write: Callable[[], None]) -> None:
    """Has a function called, which must not raise, in the thread that writes."""
    _stores.add(write)


def finish() -> None:
    """Waits until all captures so far are stored."""
    _stores.finish()


def let_others_run() -> None:
    """Releases Python's lock for a moment."""
    time.sleep(0)


def _begin_again() -> None:
    global _stores
    _stores = _Stores()


os.register_at_fork(after_in_child=_begin_again)
with contextlib.suppress(RuntimeError):  # the program ends already
    # Called before the end of the program joins threads, which it does before functions of atexit.
    threading._register_atexit(lambda: _stores.at_once.set())  # type: ignore[attr-defined]
