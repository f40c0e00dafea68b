"""The loop of a worker process."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
from collections import deque
from typing import Any

from .... import _connection
from ...._utils import ExceptionWrapper
from ..collate import (
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_numpy_scalar_fn,
    convert,
    default_collate,
    default_collate_fn_map,
    default_convert,
    stack_arrays,
)  # fmt: skip
from .fetch import Fetch, keep_freed_memory
from .info import WorkerInfo, seed_process, set_process_info
from .messages import BATCH, CHECK_SECONDS, END, ERROR, SAMPLES, SESSION_NEEDED, Setup, Task, failure
from .shared import INLINE, Numbers, SegmentWriter, SessionNeededError, SharedArray, encode, receive, send


class _Collator:
    """Like default_collate, but the leaves become arrays in shared memory instead of tensors."""

    def __init__(self, writer: SegmentWriter):
        self._writer = writer
        self._functions = {
            collate_numpy_array_fn: self._arrays,
            collate_numpy_scalar_fn: self._scalars,
            collate_float_fn: lambda batch, *, collate_fn_map: Numbers(list(batch), True),
            collate_int_fn: lambda batch, *, collate_fn_map: Numbers(list(batch), False),
        }

    def _arrays(self, batch, *, collate_fn_map) -> SharedArray:
        if len(batch) * batch[0].nbytes < INLINE or batch[0].dtype.kind not in "biufc":
            return SharedArray(stack_arrays(batch))
        shared = self._writer.array((len(batch), *batch[0].shape), batch[0].dtype)
        stack_arrays(batch, out=shared.array)
        return shared

    def _scalars(self, batch, *, collate_fn_map) -> SharedArray:
        import numpy as np

        if not isinstance(batch[0], (np.bool_, np.number)):
            return collate_numpy_scalar_fn(batch)  # raises TypeError
        return SharedArray(np.stack(batch))

    def __call__(self, samples) -> Any:
        functions = default_collate_fn_map.with_numpy()
        return collate(samples, collate_fn_map={k: self._functions.get(f, f) for k, f in functions.items()})


def _needs_session(error: BaseException) -> bool:
    """Whether a forked worker has used a tensor: one of its own, or one of the parent's session."""
    return isinstance(error, SessionNeededError) or (isinstance(error, ConnectionError) and "forked from" in str(error))


class _Loop:
    """Executes the tasks of a worker."""

    def __init__(self, sock: socket.socket, setup: Setup):
        self._socket, self._setup, self._options = sock, setup, setup.options
        self._writer = SegmentWriter()
        self._collator = _Collator(self._writer)
        self._fetch: Fetch | None = None
        self._failure: ExceptionWrapper | None = None  # the error of worker_init_fn or of the data set's __iter__
        self._ended = False  # whether the IterableDataset has ended in this epoch
        self._collates = True  # whether collate_fn has worked without a session

    def _begin(self) -> None:
        """Calls worker_init_fn. An error is the result of the tasks."""
        try:
            self._setup.call_init_fn()
        except Exception:
            self._failure = failure(self._setup)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._ended = False
        if self._failure is None:
            try:
                self._fetch = Fetch(self._options)
            except Exception:
                self._failure = failure(self._setup)

    def _collate(self, samples) -> Any:
        if self._options.collate_fn is default_collate:
            return self._collator(samples)
        if self._options.collate_fn is default_convert:
            return convert(samples, SharedArray)
        return self._options.collate_fn(samples)

    def _load(self, index) -> tuple[str, Any]:
        if self._failure is not None:
            return ERROR, self._failure
        assert self._fetch is not None
        try:
            samples = self._fetch.samples(index)
        except StopIteration:
            if not self._options.iterable:
                raise
            self._ended = True
            return END, None
        if self._collates:
            try:
                return BATCH, self._collate(samples)
            except (SessionNeededError, ConnectionError) as error:
                if not _needs_session(error):
                    raise
            self._collates = False
        return SAMPLES, samples

    def _answer(self, task: Task) -> None:
        try:
            kind, value = self._load(task.index)
            data, used = encode(value, self._writer, not self._setup.forked)
        except Exception as error:
            if _needs_session(error):
                raise SessionNeededError from None
            kind = ERROR
            data, used = encode(failure(self._setup), self._writer, False)
        self._writer.end_batch(used)
        created, dropped = self._writer.changes()
        head = pickle.dumps((task.epoch, task.number, kind, used, [number for number, _ in created], dropped))
        descriptors = [descriptor for _, descriptor in created]
        try:
            send(self._socket, head, data, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _wait(self) -> None:
        """Waits for a message. Raises EOFError if the parent has ended."""
        while not select.select([self._socket], [], [], CHECK_SECONDS)[0]:
            if self._setup.forked and os.getppid() != self._setup.parent:
                raise EOFError

    def run(self) -> None:
        """Executes tasks until the parent closes the socket."""
        self._begin()
        tasks: deque[Task] = deque()
        while True:
            while not tasks or select.select([self._socket], [], [], 0)[0]:
                self._wait()
                head, data, _ = receive(self._socket)
                self._writer.release(pickle.loads(head))
                task = pickle.loads(data)
                if task is None:  # a new epoch
                    tasks.clear()
                    self._begin_epoch()
                else:
                    tasks.append(task)
            task = tasks.popleft()
            if not self._ended:
                self._answer(task)


def worker_main(sock: socket.socket, closed: list[int], setup: Setup) -> None:
    """Runs a worker process. `closed` are inherited descriptors: the parent's ends of sockets."""
    for descriptor in closed:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    if setup.forked:
        _connection.refuse_sessions(SessionNeededError)
    else:
        os.environ.update(setup.environment)
    keep_freed_memory()
    seed_process(setup.base_seed, setup.number)
    seed = setup.base_seed + setup.number
    set_process_info(WorkerInfo(setup.number, setup.num_workers, seed, setup.options.dataset))
    try:
        _Loop(sock, setup).run()
    except (EOFError, ConnectionError):
        pass
    except SessionNeededError:
        with contextlib.suppress(OSError):
            send(sock, pickle.dumps((0, 0, SESSION_NEEDED, [], [], [])), b"", [])
    sock.close()
