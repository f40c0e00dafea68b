"""TailLog: lines of growing files, copied to a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO

__all__ = ["TailLog"]


class TailLog:
    """Copies lines that other processes append to files, from start() until stop(), in a thread.

    Args:
        name: the default prefix of a line is "[NAME INDEX]:", without the space.
        log_files: paths by index; they may not exist yet.
        dst: where the lines are written.
        log_line_prefixes: other prefixes, by index.
        interval_sec: between two reads.
        log_line_filter: whether a line is copied.
    """

    def __init__(
        self,
        name: str,
        log_files: dict[int, str],
        dst: TextIO,
        log_line_prefixes: dict[int, str] | None = None,
        interval_sec: float = 0.1,
        log_line_filter: Callable[[str], bool] = lambda line: True,
    ):
        prefixes = log_line_prefixes or {}
        self._files = {path: prefixes.get(index, f"[{name}{index}]:") for index, path in log_files.items()}
        self._dst, self._interval, self._filter = dst, interval_sec, log_line_filter
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._open: dict[str, TextIO] = {}
        self._partial: dict[str, str] = {}

    def start(self) -> TailLog:
        """Starts the thread. Returns this object."""
        if self._files and self._dst:
            self._thread = threading.Thread(target=self._run, daemon=True, name="TailLog")
            self._thread.start()
        return self

    def stop(self) -> None:
        """Copies what the files contain now, and ends the thread."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._stopped = True

    def stopped(self) -> bool:
        """Whether stop() has returned."""
        return self._stopped

    def _run(self) -> None:
        try:
            while True:
                is_last = self._ending.wait(self._interval)
                for path in self._files:
                    self._copy(path, is_last)
                if is_last:
                    return
        finally:
            for file in self._open.values():
                file.close()

    def _copy(self, path: str, is_last: bool) -> None:
        """Copies the new lines of a file; with `is_last` also one without an end."""
        if path not in self._open:
            try:
                self._open[path] = open(path, errors="replace")
            except FileNotFoundError:
                return
        lines = (self._partial.pop(path, "") + self._open[path].read()).splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n") and not is_last:
            self._partial[path] = lines.pop()
        text = "".join(f"{self._files[path]}{line}" for line in lines if self._filter(line))
        if text:
            self._dst.write(text)
            self._dst.flush()
