"""torch.futures: values that arrive later."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ._lazy import set_module

__all__ = ["Future", "collect_all", "wait_all"]


T = TypeVar("T")


def _run(callback: Callable[[Future], object], future: Future) -> object:
    try:
        return callback(future)
    except Exception as e:
        raise RuntimeError(f"Got the following error when running the callback: {type(e).__name__}: {e}") from e


class Future(Generic[T]):
    """A value that arrives later. Callbacks run in the thread that completes or first waits for the future.

    A future of a collective is completed by ``wait()`` or ``value()``, on it or on a future derived from it with
    ``then()``: the client has no thread that waits for the engine.

    Args:
        compute: returns the value when it is needed; without it, ``set_result`` or ``set_exception`` completes the future.
        is_ready: whether `compute` would return at once.
    """

    def __init__(self, *, devices=None, compute: Callable | None = None, is_ready: Callable[[], bool] | None = None):
        self._compute, self._is_ready = compute, is_ready
        self._lock = threading.RLock()
        self._completed = threading.Event()
        self._value, self._error = None, None
        self._callbacks: list[Callable[[Future], None]] = []

    def _complete(self, value, error: BaseException | None) -> None:
        with self._lock:
            if self._completed.is_set():
                raise RuntimeError("Future already has a result")
            self._value, self._error, self._compute = value, error, None
            self._completed.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._notify(callback)

    def _notify(self, callback: Callable[[Future], None]) -> None:
        """Calls a callback, whose error nobody would receive."""
        try:
            _run(callback, self)
        except RuntimeError as e:
            logging.getLogger(__name__).error(e)

    def _finish(self) -> None:
        with self._lock:
            if self._completed.is_set() or self._compute is None:
                compute = None
            else:
                compute = self._compute
                try:
                    value, error = compute(), None
                except Exception as e:  # noqa: BLE001 - stored, and raised by wait()
                    value, error = None, e
                self._complete(value, error)
        self._completed.wait()

    def done(self) -> bool:
        """Whether wait() returns at once. Of a collective's future: makes a round trip to the engine."""
        if not self._completed.is_set() and self._is_ready is not None and self._is_ready():
            self._finish()
        return self._completed.is_set()

    def wait(self):
        """Waits until the value is available, and returns it or raises its exception."""
        self._finish()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """Same as wait()."""
        return self.wait()

    def set_result(self, result) -> None:
        """Completes the future. Raises RuntimeError if it is complete."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Completes the future with an exception, which wait() raises."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result!r} is of type {type(result).__name__}, not an Exception.")
        self._complete(None, result)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Calls ``callback(self)`` when the future is complete; at once if it is. Errors of the callback are logged."""
        with self._lock:
            if not self._completed.is_set():
                self._callbacks.append(callback)
                return
        self._notify(callback)

    def then(self, callback: Callable[[Future], object]) -> Future:
        """Returns a future of ``callback(self)``, whose errors it raises as RuntimeError."""
        if self._compute is not None:
            return Future(compute=lambda: (self._finish(), _run(callback, self))[1], is_ready=self._is_ready)
        derived = Future()

        def run(parent: Future) -> None:
            try:
                value = _run(callback, parent)
            except RuntimeError as e:
                derived.set_exception(e)
            else:
                derived.set_result(value)

        self.add_done_callback(run)
        return derived


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


set_module("teletensor.jit", Future)  # as in PyTorch
