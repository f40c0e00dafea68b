"""torch.futures: values that arrive later."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .distributed._future import Future

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Future", "collect_all", "wait_all"]


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """Returns a future that is complete, with the list of the given futures, when all of them are."""
    if any(future._compute is not None for future in futures):  # futures of collectives are complete only after a wait
        return Future(compute=lambda: _finish(futures), is_ready=lambda: all(future.done() for future in futures))
    collected, lock, left = Future(), threading.Lock(), len(futures)

    def on_done(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            collected.set_result(futures)

    if not futures:
        collected.set_result(futures)
    for future in futures:
        future.add_done_callback(on_done)
    return collected


def _finish(futures: Sequence[Future]) -> Sequence[Future]:
    for future in futures:
        future._finish()
    return futures


def wait_all(futures: Sequence[Future]) -> list:
    """Waits for the futures, and returns their values or raises the first one's error."""
    return [future.wait() for future in futures]
