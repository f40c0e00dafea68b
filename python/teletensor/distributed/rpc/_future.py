"""Futures of calls."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...futures import Future

_local = threading.local()


def mark_receiving_thread() -> None:
    """Declares that this thread receives messages, so it must not run the user's code, which may wait for messages."""
    _local.receives = True


class RpcFuture(Future):
    """The result of a call. Callbacks run in the agent's threads, or in the caller's if the future is complete.

    Args:
        submit: runs a function in a thread of the agent.
    """

    def __init__(self, submit: Callable[[Callable[[], None]], None]):
        super().__init__()
        self._submit = submit

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        def call(future: Future) -> None:
            if getattr(_local, "receives", False):
                self._submit(lambda: callback(future))
            else:
                callback(future)

        super().add_done_callback(call)

    def settle(self, value=None, error: BaseException | None = None) -> None:
        """Completes the future, unless it is complete: a reply may arrive after the timeout."""
        try:
            self._complete(value, error)
        except RuntimeError:
            if not self.done():
                raise
