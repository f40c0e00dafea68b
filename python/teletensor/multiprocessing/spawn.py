"""spawn and start_processes: run a function in several processes; the first error is raised with its traceback."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Callable

from ._contexts import get_context

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn",
    "start_processes",
]  # fmt: skip


class ProcessException(Exception):
    """A process failed; ``error_index`` is its index."""

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception, whose traceback is part of the message."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or with an exit status."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _end_with_parent() -> None:
    """Sends this process SIGINT when its parent ends."""
    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGINT))


def _run(function: Callable, index: int, args: tuple, error_file: str) -> None:
    """The main function of a process: writes the traceback of an error to a file."""
    _end_with_parent()
    parent = os.getppid()
    try:
        function(index, *args)
    except KeyboardInterrupt:
        if os.getppid() == parent:
            Path(error_file).write_text(traceback.format_exc())
            sys.exit(128 + signal.SIGINT)
    except Exception:  # noqa: BLE001 - reported to the parent
        Path(error_file).write_text(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list, error_files: list[str]):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' ids."""
        return [int(process.pid) for process in self.processes]

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until a process has ended or ``timeout`` seconds have passed; True when all have ended.

        If one failed, ends the others, first waiting ``grace_period`` seconds for them, and raises its error.

        Raises:
            ProcessRaisedException: the function raised an exception.
            ProcessExitedException: the process ended in another way.
        """
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout) if self.sentinels else ():
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        raise self._error(failed)

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for end in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            self._wait(30.0 if grace_period is None else grace_period)
        for process in self.processes:
            process.join()

    def _error(self, index: int) -> ProcessException:
        process, file = self.processes[index], Path(self.error_files[index])
        if file.exists():
            text = file.read_text()
            file.unlink()
            message = f"\n\n-- Process {index:d} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code >= 0:
            message = f"process {index:d} terminated with exit code {code:d}"
            return ProcessExitedException(message, index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {index:d} terminated with signal {name}", index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """PyTorch's old name of ProcessContext."""

    def __init__(self, processes: list, error_files: list[str]):
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in ``nprocs`` processes.

    Args:
        join: waits for them and raises the first error; else returns the ProcessContext.
        daemon: the processes end with this one.
        start_method: "spawn", "forkserver" or "fork", with which ``args`` must not contain tensors.
    """
    context = get_context(start_method)
    folder = tempfile.mkdtemp(prefix="teletensor-processes-")
    error_files = [str(Path(folder) / str(i)) for i in range(nprocs)]
    processes = [context.Process(target=_run, args=(fn, i, args, error_files[i]), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    try:
        while not started.join():
            pass
    finally:
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return None


def spawn(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """start_processes with the start method "spawn"; others are deprecated here."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n\t\t "
            "torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)
