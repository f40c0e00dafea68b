"""Processes of this host: where their output goes, their start, their results and their end."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import enum
import multiprocessing.connection
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from .... import multiprocessing as _multiprocessing
from .errors import ProcessFailure, record
from .redirects import redirect_stderr, redirect_stdout
from .tail_log import TailLog

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "RunProcsResult", "SignalException", "Std",
    "SubprocessContext", "to_map",
]  # fmt: skip

_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


class SignalException(Exception):
    """This process received a signal, `sigval`, while it had started others."""

    def __init__(self, msg: str, sigval: signal.Signals):
        super().__init__(msg)
        self.sigval = sigval


def _raise_signal(number: int, frame) -> None:
    raise SignalException(f"Process {os.getpid()} got signal: {number}", signal.Signals(number))


class Std(enum.IntFlag):
    """Standard streams."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Parses "3", or "0:3,1:1" by local rank. Raises ValueError."""
        if re.fullmatch("[0-3]", vm):
            return cls(int(vm))
        if re.fullmatch(r"\d:[0-3](,\d:[0-3])*", vm):
            return {int(rank): cls(int(bits)) for rank, bits in (entry.split(":") for entry in vm.split(","))}
        raise ValueError(f"{vm} does not match: <^[0123]$> or <^(\\d:[0123],)*(\\d:[0123])$>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """Returns the streams of each local rank, from those of all, or of some."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclasses.dataclass
class LogsDest:
    """Paths by local rank: the file of a stream, or "" if it is this process's; the files whose lines are shown; the failure
    files; the files of filtered lines.
    """

    stdouts: dict[int, str] = dataclasses.field(default_factory=dict)
    stderrs: dict[int, str] = dataclasses.field(default_factory=dict)
    tee_stdouts: dict[int, str] = dataclasses.field(default_factory=dict)
    tee_stderrs: dict[int, str] = dataclasses.field(default_factory=dict)
    error_files: dict[int, str] = dataclasses.field(default_factory=dict)
    filtered_stdout: str = ""
    filtered_stderr: str = ""


class LogsSpecs(abc.ABC):
    """Where the output of processes goes.

    Args:
        log_dir: the folder of the files.
        redirects: streams that are written to files, of all processes or by local rank.
        tee: streams that are written to files and shown.
        local_ranks_filter: the local ranks whose output is shown; None or empty: all.
    """

    def __init__(
        self, log_dir: str | None = None, redirects: Std | dict[int, Std] = Std.NONE, tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ):  # fmt: skip
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @abc.abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Returns the paths for processes with these variables, to which it may add some."""

    @property
    @abc.abstractmethod
    def root_log_dir(self) -> str:
        """The folder of the files."""


class DefaultLogsSpecs(LogsSpecs):
    """Files LOG_DIR/RUN_.../attempt_N/RANK/{stdout.log,stderr.log,error.json}.

    `log_dir` is created; without one, a temporary folder is; with os.devnull there are no files. RUN and N are the variables
    TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT of the processes.
    """

    def __init__(
        self, log_dir: str | None = None, redirects: Std | dict[int, Std] = Std.NONE, tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ):  # fmt: skip
        if not log_dir:
            log_dir = tempfile.mkdtemp(prefix="torchelastic_")
        elif log_dir != os.devnull:
            if os.path.isfile(log_dir):
                raise NotADirectoryError(f"log_dir: {log_dir} is a file")
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None

    @property
    def root_log_dir(self) -> str:
        return str(self._root_log_dir)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        ranks = range(len(envs))
        if self._root_log_dir == os.devnull:
            for rank in ranks:
                envs[rank]["TORCHELASTIC_ERROR_FILE"] = ""
            shown, nothing = ({rank: path for rank in ranks} for path in ("", os.devnull))
            return LogsDest(shown, dict(shown), nothing, dict(nothing), dict(nothing), os.devnull, os.devnull)
        attempt = self._attempt_folder(envs.get(0, {}))
        redirects, tee = to_map(self._redirects, len(envs)), to_map(self._tee, len(envs))
        found = LogsDest(
            filtered_stdout=os.path.join(attempt, "filtered_stdout.log"), filtered_stderr=os.path.join(attempt, "filtered_stderr.log")
        )  # fmt: skip
        for rank in ranks:
            folder = os.path.join(attempt, str(rank))
            os.mkdir(folder)
            hidden = bool(self._local_ranks_filter) and rank not in self._local_ranks_filter
            streams = ((Std.OUT, "stdout.log", found.stdouts, found.tee_stdouts), (Std.ERR, "stderr.log", found.stderrs, found.tee_stderrs))
            for stream, name, files, shown in streams:
                in_file = (redirects[rank] | tee[rank]) & stream
                files[rank] = os.path.join(folder, name) if in_file else os.devnull if hidden else ""
                if tee[rank] & stream and not hidden:
                    shown[rank] = files[rank]
            found.error_files[rank] = envs[rank]["TORCHELASTIC_ERROR_FILE"] = os.path.join(folder, "error.json")
        return found

    def _attempt_folder(self, environment: dict[str, str]) -> str:
        """Creates the empty folder of this attempt."""
        if self._run_log_dir is None:
            os.makedirs(self._root_log_dir, exist_ok=True)
            run = environment.get("TORCHELASTIC_RUN_ID", "test_run_id")
            self._run_log_dir = tempfile.mkdtemp(prefix=f"{run}_", dir=self._root_log_dir)
        attempt = os.path.join(self._run_log_dir, f"attempt_{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}")
        shutil.rmtree(attempt, ignore_errors=True)
        os.makedirs(attempt)
        return attempt

    def _values(self) -> tuple:
        return self._root_log_dir, self._redirects, self._tee, self._local_ranks_filter

    def __repr__(self) -> str:
        return (
            f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects}, tee={self._tee}, "
            f"local_ranks_filter={self._local_ranks_filter})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DefaultLogsSpecs) and self._values() == other._values()

    __hash__ = None


@dataclasses.dataclass
class RunProcsResult:
    """How processes ended, by local rank: the values that functions returned, or the failures; and the files of streams."""

    return_values: dict[int, Any] = dataclasses.field(default_factory=dict)
    failures: dict[int, ProcessFailure] = dataclasses.field(default_factory=dict)
    stdouts: dict[int, str] = dataclasses.field(default_factory=dict)
    stderrs: dict[int, str] = dataclasses.field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether a process failed."""
        return bool(self.failures)


class PContext(abc.ABC):
    """Processes that were started together. Arguments: see start_processes()."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable | str,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ):
        self.name, self.entrypoint, self.args, self.envs, self.nprocs = name, entrypoint, args, envs, len(args)
        logs = logs_specs.reify(envs)
        self.stdouts, self.stderrs, self.error_files = logs.stdouts, logs.stderrs, logs.error_files
        self._failures: dict[int, ProcessFailure] = {}
        self._files = contextlib.ExitStack()  # of filtered lines
        self._tails: list[TailLog] = []
        streams = (
            (logs.tee_stdouts, sys.stdout, duplicate_stdout_filters, logs.filtered_stdout),
            (logs.tee_stderrs, sys.stderr, duplicate_stderr_filters, logs.filtered_stderr),
        )
        for shown, stream, texts, filtered in streams:
            self._tails.append(TailLog(name, shown, stream, log_line_prefixes))
            if texts:
                file = self._files.enter_context(open(filtered, "w", errors="replace", buffering=1))
                contains = lambda line, texts=texts: any(text in line for text in texts)  # noqa: E731
                self._tails.append(TailLog(name, shown, file, log_line_prefixes, log_line_filter=contains))

    def start(self) -> None:
        """Starts the processes. In the main thread, the signals in TORCHELASTIC_SIGNALS_TO_HANDLE raise SignalException from
        now on.
        """
        if threading.current_thread() is threading.main_thread():
            for name in os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", _SIGNALS).split(","):
                signal.signal(getattr(signal, name.strip()), _raise_signal)
        self._start()
        for tail in self._tails:
            tail.start()

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Returns the result when all processes have ended, or one has failed and the others are ended; None after `timeout`
        seconds. Negative: without limit. `period`: the most seconds between two checks.
        """
        end = time.monotonic() + timeout if timeout >= 0 else float("inf")
        while (result := self._poll()) is None:
            left = min(period, end - time.monotonic())
            if left <= 0:
                return None
            self._wait_for_exit(left)
        return result

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """Ends the processes by a signal, by default SIGTERM, and after `timeout` seconds by SIGKILL."""
        running = self._running()
        for rank in running:
            self._send(rank, death_sig or signal.SIGTERM)
        end = time.monotonic() + timeout
        while (running := self._running()) and time.monotonic() < end:
            self._wait_for_exit(end - time.monotonic())
        for rank in running:
            self._send(rank, signal.SIGKILL)
        for rank in range(self.nprocs):
            self._join(rank)
        for tail in self._tails:
            tail.stop()
        self._files.close()

    def _poll(self) -> RunProcsResult | None:
        for rank in range(self.nprocs):
            self._record_failure(rank)
        if not self._failures and (self._running() or not self._has_results()):
            return None
        self.close()
        files = {"stdouts": self.stdouts, "stderrs": self.stderrs}
        if self._failures:
            return RunProcsResult(failures=self._failures, **files)
        return RunProcsResult(return_values=self._results(), **files)

    def _record_failure(self, rank: int) -> None:
        code = self._exit_code(rank)
        if code and rank not in self._failures:
            self._failures[rank] = ProcessFailure(rank, self.pids()[rank], code, self.error_files[rank])

    def _running(self) -> list[int]:
        return [rank for rank in self.pids() if self._exit_code(rank) is None]

    def _send(self, rank: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pids()[rank], number)

    @abc.abstractmethod
    def _start(self) -> None:
        """Starts the processes."""

    @abc.abstractmethod
    def pids(self) -> dict[int, int]:
        """Returns the ids of the processes that were started, by local rank."""

    @abc.abstractmethod
    def _exit_code(self, rank: int) -> int | None:
        """Returns the exit code, -N after signal N; None while the process runs."""

    @abc.abstractmethod
    def _wait_for_exit(self, seconds: float) -> None:
        """Waits until a running process ends or sends its result."""

    @abc.abstractmethod
    def _join(self, rank: int) -> None:
        """Waits for a process that was ended, if it was started."""

    def _has_results(self) -> bool:
        return True

    def _results(self) -> dict[int, Any]:
        """Returns the values that functions returned."""
        return dict.fromkeys(range(self.nprocs))


class SubprocessContext(PContext):
    """Processes that execute a program. Each is the leader of a session of its own, which is ended as a whole."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._processes: dict[int, subprocess.Popen] = {}

    def _start(self) -> None:
        for rank in range(self.nprocs):
            with contextlib.ExitStack() as files:
                stdout, stderr = (
                    files.enter_context(open(path, "wb")) if path else None for path in (self.stdouts[rank], self.stderrs[rank])
                )
                self._processes[rank] = subprocess.Popen(
                    [self.entrypoint, *map(str, self.args[rank])], env={**os.environ, **_texts(self.envs[rank])}, stdout=stdout,
                    stderr=stderr, start_new_session=True,
                )  # fmt: skip

    def pids(self) -> dict[int, int]:
        return {rank: process.pid for rank, process in self._processes.items()}

    def _exit_code(self, rank: int) -> int | None:
        return self._processes[rank].poll()

    def _wait_for_exit(self, seconds: float) -> None:
        pidfds = [os.pidfd_open(self._processes[rank].pid) for rank in self._running()]
        try:
            multiprocessing.connection.wait(pidfds, seconds)
        finally:
            for fd in pidfds:
                os.close(fd)

    def _send(self, rank: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._processes[rank].pid, number)

    def _join(self, rank: int) -> None:
        if rank in self._processes:
            self._processes[rank].wait()


class MultiprocessContext(PContext):
    """Processes that call a function. Tensors in arguments and results are shared, as with torch.multiprocessing."""

    def __init__(self, *args, start_method: str = "spawn", **kwargs):
        super().__init__(*args, **kwargs)
        self.start_method = start_method
        self._processes: dict[int, Any] = {}
        self._pipes: dict[int, multiprocessing.connection.Connection] = {}  # of results that have not arrived
        self._arrived: dict[int, Any] = {}

    def _start(self) -> None:
        context = _multiprocessing.get_context(self.start_method)
        for rank in range(self.nprocs):
            self._pipes[rank], sends = context.Pipe(duplex=False)
            arguments = (self.entrypoint, self.args[rank], _texts(self.envs[rank]), self.stdouts[rank], self.stderrs[rank], sends)
            self._processes[rank] = context.Process(target=_call, args=arguments)
            self._processes[rank].start()
            sends.close()

    def pids(self) -> dict[int, int]:
        return {rank: process.pid for rank, process in self._processes.items()}

    def _exit_code(self, rank: int) -> int | None:
        return self._processes[rank].exitcode

    def _wait_for_exit(self, seconds: float) -> None:
        multiprocessing.connection.wait([*(self._processes[r].sentinel for r in self._running()), *self._pipes.values()], seconds)
        self._receive()

    def _receive(self) -> None:
        """Receives the results that have been sent: a process ends when its result was received."""
        for rank in [rank for rank, pipe in self._pipes.items() if pipe.poll()]:
            with self._pipes.pop(rank) as pipe:
                try:
                    self._arrived[rank] = pipe.recv()
                except EOFError:  # the process failed, or has ended by os._exit(0)
                    self._arrived[rank] = None

    def _join(self, rank: int) -> None:
        if rank in self._processes:
            self._processes[rank].join()

    def _has_results(self) -> bool:
        self._receive()
        return len(self._arrived) == self.nprocs

    def _results(self) -> dict[int, Any]:
        return dict(sorted(self._arrived.items()))


def _texts(variables: dict) -> dict[str, str]:
    return {name: str(value) for name, value in variables.items()}


def _call(function: Callable, args: tuple, variables: dict[str, str], stdout: str, stderr: str, sends) -> None:
    """The main function of a process."""
    for number in signal.valid_signals():  # those that a forked process has inherited
        if signal.getsignal(number) is _raise_signal:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.update(variables)
    with contextlib.ExitStack() as streams:
        if stdout:
            streams.enter_context(redirect_stdout(stdout))
        if stderr:
            streams.enter_context(redirect_stderr(stderr))
        value = record(function)(*args)
    sends.send(value)
