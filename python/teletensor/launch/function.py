"""Ranks that call a function of the launching program instead of executing a command. See torch.distributed.launcher."""

from __future__ import annotations

import ctypes
import dataclasses
import multiprocessing
import multiprocessing.process
import os
import pickle
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from .. import _connection
from ..distributed.elastic.multiprocessing.errors import record

START_METHODS = ("spawn", "fork")

_USED = (
    "[launch] expected start_method='spawn', because this program has used an engine before its ranks were forked, got "
    "'fork': a forked process cannot open a session then"
)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def end_with(parent: int) -> None:
    """Makes the kernel kill the calling process when its parent, whose id is given, ends. Runs between fork and exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


@dataclasses.dataclass(frozen=True)
class Call:
    """A function, its arguments, and how its process starts: by "fork", or by "spawn" as a new process that imports the
    program's main module. Arguments of spawned processes, and all results, are pickled; tensors by value.
    """

    function: Callable
    args: tuple
    start_method: str


class FunctionProcess:
    """A process that makes a call, the leader of a session of its own, with the part of Popen's interface that a rank
    uses. The pickled result is written to a file.

    Args:
        stdout, stderr: descriptors, of which the process gets copies.
        guard: a descriptor of which a forked process must not keep a copy.
    """

    def __init__(
        self, call: Call, environment: dict[str, str], stdout: int, stderr: int, result: Path, guard: int
    ):  # fmt: skip
        forks = call.start_method == "fork"
        streams = [Connection(os.dup(fd), readable=False) for fd in (stdout, stderr)]
        self._process = multiprocessing.get_context(call.start_method).Process(
            target=_run, args=(call, streams, str(result), os.getpid(), guard if forks else None)
        )
        # A signal that a forked process receives before it has replaced the launcher's handlers would reach the launcher
        # through the descriptor that both share.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() if forks else ())
        inherited = dict(os.environ)
        try:
            _set_environment(environment)
            self._process.start()
        finally:
            _set_environment(inherited)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            for stream in streams:
                stream.close()
        # multiprocessing reaps the processes that it knows whenever it starts another one. The rank is reaped by wait(), so
        # that its id, which names its group, is not used again before.
        multiprocessing.process._children.discard(self._process)
        self.pid = self._process.pid

    def wait(self) -> None:
        """Waits for the end of the process."""
        self._process.join()


def _set_environment(variables: dict[str, str]) -> None:
    """Changes os.environ, which a new process inherits."""
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _run(call: Call, streams: list[Connection], result: str, parent: int, guard: int | None) -> None:
    """The main function of a process."""
    os.setsid()
    end_with(parent)
    if guard is not None:
        _leave_parent(guard)
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((null, 0), (streams[0].fileno(), 1), (streams[1].fileno(), 2)):
        os.dup2(fd, target)
    # A forked process may have inherited objects that do not write to these descriptors, such as those of a notebook.
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    value = record(call.function)(*call.args)
    draft = f"{result}.{os.getpid()}"
    with open(draft, "wb") as file:
        pickle.dump(value, file)
    os.replace(draft, result)


def _leave_parent(guard: int) -> None:
    """Removes what a forked process has inherited from its launcher: handlers of signals and the guard's descriptor. If the
    launcher has had a session with an engine, a forked process cannot open one, as in PyTorch after CUDA was used.
    """
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.close(guard)
    if _connection.has_connected():
        _connection.refuse_sessions(RuntimeError(_USED))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
