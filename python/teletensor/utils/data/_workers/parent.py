"""The parent's side of a worker process."""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ...._threads import Thread
from .child import worker_main
from .messages import BATCH, CHECK_SECONDS, DIED, END, ERROR, SAMPLES, SESSION_NEEDED, Result, Setup, Task, failure
from .shared import Decoder, receive, send

_collate_lock = threading.Lock()  # collate functions are written for one thread


class ProcessWorker:
    """A worker process. A thread receives its batches and uploads them, and puts them into the queue of results.

    Methods are called by the iterator's thread.
    """

    def __init__(self, setup: Setup, context, results: queue.SimpleQueue, inherited: list[int]):
        if not setup.forked:
            from ....multiprocessing.reductions import init_reductions

            init_reductions()  # the data set may hold tensors
        else:
            # The worker seeds it. Not imported there: another thread may import something while the process is forked, and
            # Python's record of imports in progress is then inconsistent in the worker.
            with contextlib.suppress(ImportError):
                import numpy.random  # noqa: F401
        self._socket, theirs = socket.socketpair()
        self._setup, self._results = setup, results
        self._released: deque[list[int]] = deque()  # segments that the worker may reuse
        closed = [*inherited, self._socket.fileno()] if setup.forked else []
        self.process = context.Process(target=worker_main, args=(theirs, closed, setup), daemon=True)
        try:
            self.process.start()
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._thread = Thread(self._receive, f"loader-{setup.number}")
        self._thread.start()

    @property
    def identifier(self) -> int | None:
        """The number of the process."""
        return self.process.pid

    def fileno(self) -> int:
        """The descriptor of the parent's end of the socket."""
        return self._socket.fileno()

    def _send(self, task: Task | None) -> None:
        released: list[int] = []
        while self._released:
            released += self._released.popleft()
        try:
            send(self._socket, pickle.dumps(released), pickle.dumps(task), [])
        except OSError:
            pass  # the thread reports that the worker has ended
        except BaseException:  # KeyboardInterrupt: the message may be incomplete
            self.begin_stop()
            raise

    def send(self, task: Task) -> None:
        """Requests a batch."""
        self._send(task)

    def begin_epoch(self) -> None:
        """Drops requests that the worker has not begun, and starts a new iteration of an IterableDataset."""
        self._send(None)

    def _receive(self) -> None:
        decoder = Decoder()
        with contextlib.suppress(EOFError, OSError):
            while True:
                head, data, descriptors = receive(self._socket)
                epoch, number, kind, used, created, dropped = pickle.loads(head)
                decoder.map(created, descriptors, dropped)
                value = None
                if kind not in (END, SESSION_NEEDED):
                    kind, value = self._decode(decoder, kind, data)
                self._released.append(used)
                self._results.put(Result(self, epoch, number, kind, value))
                del value, data
        self._results.put(Result(self, 0, 0, DIED))

    def _decode(self, decoder: Decoder, kind: str, data: bytearray) -> tuple[str, Any]:
        try:
            value = decoder.decode(data)
            if kind == SAMPLES:
                function: Callable = self._setup.options.collate_fn
                with _collate_lock:
                    return BATCH, function(value)
            return kind, value
        except Exception:
            return ERROR, failure(self._setup)

    def describe_exit(self) -> str:
        """How the process ended, in PyTorch's words."""
        process = self.process
        process.join(CHECK_SECONDS)
        code = process.exitcode
        if code is None or code >= 0:
            return (
                f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. Details are lost due to "
                "multiprocessing. Rerunning with num_workers=0 may give better error trace."
            )
        text = f"DataLoader worker (pid {process.pid}) is killed by signal: {signal.strsignal(-code)}. "
        if -code == signal.SIGBUS:
            text += "It is possible that dataloader's workers are out of shared memory. Please raise the memory limit."
        return text

    def begin_stop(self) -> None:
        """Lets the process end after the batch in progress."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def finish_stop(self, seconds: float) -> None:
        """Waits until the process has ended; ends it after some seconds."""
        self.process.join(max(0.0, seconds))
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(1)
        if threading.current_thread() is not self._thread:
            self._thread.join(CHECK_SECONDS)
        self._socket.close()
