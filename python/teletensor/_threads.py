"""Threads of the package, which end before the interpreter does."""

from __future__ import annotations

import threading
import time
import weakref

_EXIT_SECONDS = 5.0
_threads: weakref.WeakSet[Thread] = weakref.WeakSet()


class Thread(threading.Thread):
    """A thread that does not keep the program running, and that join_all() waits for."""

    def __init__(self, target, name: str, args: tuple = ()):
        super().__init__(target=target, name=name, args=args, daemon=True)
        _threads.add(self)


def join_all() -> None:
    """Waits until the threads have ended, for at most 5 seconds in all. Called when the program ends and the sessions have
    ended, which ends their waits for an engine. A user's function that runs in one of them may take longer.
    """
    deadline = time.monotonic() + _EXIT_SECONDS
    for thread in list(_threads):
        if thread.is_alive() and thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
