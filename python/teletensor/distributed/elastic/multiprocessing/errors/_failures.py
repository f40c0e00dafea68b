"""``record`` and the exceptions of processes that failed."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import signal
import time
from collections.abc import Callable
from datetime import datetime

from ....._lazy import set_module
from .error_handler import ErrorHandler
from .handlers import get_error_handler

_NOT_AVAILABLE = "<N/A>"


@dataclasses.dataclass
class ProcessFailure:
    """A process that failed.

    Args:
        local_rank: its rank on its host.
        pid: its process id.
        exitcode: its exit code; -N after signal N.
        error_file: its failure file; it need not exist.

    Attributes:
        message: the file's message (a dict), or a sentence about the exit.
        timestamp: seconds since the epoch: of the failure file, otherwise of this object.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict = dataclasses.field(init=False, default_factory=dict)
    message: str | dict = dataclasses.field(init=False, default="")
    timestamp: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        if os.path.isfile(self.error_file):
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            stamped = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = int(stamped.get("timestamp", 0))
        else:
            self.error_file = _NOT_AVAILABLE
            self.timestamp = int(time.time())
        if not self.message:
            if self.exitcode < 0:
                self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            else:
                self.message = "no traceback: the process wrote no failure file (decorate its entry point with @record)"

    def signal_name(self) -> str:
        """The signal's name, or "<N/A>"."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else _NOT_AVAILABLE
        except ValueError:
            return _NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """The time as YYYY-MM-DD_HH:MM:SS."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Some of the processes that a function started have failed.

    Args:
        name: the entry point's name.
        failures: by global rank; at least one.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        if not failures:
            raise AssertionError("[ChildFailedError] expected at least one failure")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Returns the rank that failed first, and its failure."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """Returns the message: the first failure, then the others."""
        first, _ = self.get_first_failure()
        others = [self._section(rank) for rank in self.failures if rank != first] or ["  <NO_OTHER_FAILURES>"]
        title = f"{self.name} FAILED"
        border, line = boarder_delim * 60, section_delim * 60
        root = self._section(first)
        return "\n".join([border, title, line, "Failures:", *others, line, "Root Cause (first observed failure):", root, border])

    def _section(self, rank: int) -> str:
        failure = self.failures[rank]
        text = failure.message
        if isinstance(text, dict):
            text = text.get("extraInfo", {}).get("py_callstack") or text.get("message", _NOT_AVAILABLE)
        text = str(text).replace("\n", "\n  ")
        name = failure.signal_name()
        how = f"{failure.exitcode}" + ("" if name == _NOT_AVAILABLE else f" ({name})")
        return (
            f"  time      : {failure.timestamp_isoformat()}\n  rank      : {rank} (local_rank: {failure.local_rank})\n"
            f"  exitcode  : {how} (pid: {failure.pid})\n  error_file: {failure.error_file}\n  traceback : {text}"
        )


def record(fn: Callable, error_handler: ErrorHandler | None = None) -> Callable:
    """Decorator for a program's entry point: writes its uncaught exception to the rank's failure file.

    An exit with SystemExit(0) returns None, as in PyTorch. After ChildFailedError the file of the first failed child
    becomes this process's file.
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        handler.set_entrypoint_fn_name(getattr(fn, "__qualname__", None))
        handler.initialize()
        try:
            result = fn(*args, **kwargs)
        except SystemExit as error:
            if error.code == 0:
                return None
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file != _NOT_AVAILABLE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise
        handler.record_success()
        return result

    return wrapper


set_module(__package__, ProcessFailure, ChildFailedError, record)
