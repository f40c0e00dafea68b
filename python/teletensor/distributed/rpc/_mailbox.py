"""Messages between workers, through the stores that their engines serve.

A worker writes its messages into the store of its own engine, numbered per receiver. Each worker waits at the store of each
other worker for the next message. So writing does not wait for another host, one waiting call per worker both receives
messages and detects that the sender's engine or session has ended, and nothing listens in the Python processes.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
from collections.abc import Callable

from ... import _C
from ..._threads import Thread
from .. import _serving

MAX_MESSAGE = 8 << 20  # a store's maximum value
_CONNECT_SECONDS = 30.0
_WAIT_SECONDS = 3600.0  # of one call


class Outbox:
    """This worker's messages to the others, at the engine's interface `host`."""

    def __init__(self, host: str):
        port, self.token = _serving.serve_published(host)
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.prefix = secrets.token_hex(8)  # earlier workers of this session used the same store
        self._store = _C.RemoteStore(self.address, self.token, _CONNECT_SECONDS)
        self._locks: dict[int, threading.Lock] = {}
        self._sent: dict[int, int] = {}
        self._lock = threading.Lock()

    def send(self, to: int, message: bytes) -> None:
        """Writes a message. Messages to one worker arrive in the order in which they are written.

        Raises:
            ValueError: it is too large.
            RuntimeError: the store is full, because the worker does not receive.
        """
        if len(message) > MAX_MESSAGE:
            raise ValueError(
                f"[rpc] expected at most {MAX_MESSAGE} bytes of arguments or results besides tensors, got {len(message)}: "
                "send large values as tensors"
            )
        with self._lock:
            lock = self._locks.setdefault(to, threading.Lock())
        with lock:
            number = self._sent.get(to, 0)
            self._store.set([f"{self.prefix}/{to}/{number}"], [message])
            self._sent[to] = number + 1


class Inbox:
    """Receives the messages of one other worker to this one, in a thread.

    Args:
        later: runs a function in another thread. Messages are erased there, while the next one is awaited.
        receive: called with each message.
        lost: called once, with the reason, if the sender's store is lost or `receive` raises ValueError. After it, and
            after close(), nothing is called.
    """

    def __init__(
        self,
        address: str,
        token: str,
        prefix: str,
        me: int,
        name: str,
        later: Callable,
        receive: Callable,
        lost: Callable,
    ) -> None:
        self._store = _C.RemoteStore(address, token, _CONNECT_SECONDS)
        self._prefix, self._next = f"{prefix}/{me}", 0
        self._later, self._receive, self._lost = later, receive, lost
        self._closed = False
        self.thread = Thread(self._run, f"rpc-from-{name}")

    def start(self) -> None:
        self.thread.start()

    def _key(self) -> str:
        return f"{self._prefix}/{self._next}"

    def _run(self) -> None:
        while not self._closed:
            try:
                message = self._store.get([self._key()], _WAIT_SECONDS)[0]
                if self._closed:
                    return
                self._receive(message)
                self._later(functools.partial(self._erase, self._key()))
                self._next += 1
            except TimeoutError:
                continue
            except (ConnectionError, PermissionError, RuntimeError, ValueError) as error:
                if not self._closed:
                    self._closed = True
                    self._lost(str(error))

    def _erase(self, key: str) -> None:
        with contextlib.suppress(ConnectionError, PermissionError, RuntimeError):  # the store may be lost
            self._store.erase(key)

    def stop(self) -> None:
        """Ends the thread after the current message. Called by `receive`."""
        self._closed = True

    def close(self) -> None:
        """Ends the thread, and waits for it."""
        self._closed = True
        if self.thread is threading.current_thread() or not self.thread.is_alive():
            return
        with contextlib.suppress(
            ConnectionError, PermissionError, RuntimeError
        ):  # if it is lost, the thread does not wait
            self._store.set([self._key()], [b""])  # wakes the thread
        self.thread.join()
