"""Runs the comparison in worker processes: time limits, restarts, progress, and a file from which a run continues."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import selectors
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .. import peer

MODULE = "tests.conformance.differential.worker"


@dataclass
class Limits:
    """Seconds for one call (with making its arguments), and for all calls of one name."""

    call: float = 120.0
    name: float = 600.0
    start: float = 600.0  # until the process has imported both packages


@dataclass
class Row:
    """The outcomes of one name."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    overloads: list[str] = field(default_factory=list)
    found: list[list] = field(default_factory=list)  # path, argument, text of each difference
    seconds: float = 0.0

    def add(self, kind: str, count: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + count


class Worker:
    """A process that compares calls, with an engine of its own. One thread uses it."""

    def __init__(self, python: str, limits: Limits, module: str = MODULE):
        self.command, self.limits = [python, "-m", module], limits
        self.process: subprocess.Popen | None = None
        self.buffer = b""

    def names(self) -> tuple[list[str], str]:
        """All names, and PyTorch's version."""
        self._send(["?", 0, 0])
        _, names, version = self._event(self.limits.call)
        return names, version

    def row(self, name: str, most: int) -> Row:
        """Compares the calls of a name. A call that hangs or ends the process is one difference; the next ones run."""
        row, start, first = Row(name), time.monotonic(), 0
        while first is not None:
            first = self._run(row, most, first, start + self.limits.name)
        row.seconds = round(time.monotonic() - start, 1)
        row.overloads = sorted(set(row.overloads))
        return row

    def _run(self, row: Row, most: int, first: int, end: float) -> int | None:
        """Runs steps from `first` on; the step to continue with after a restart, None if the name is done."""
        at = [None, first - 1, row.name, "", ""]
        self._send([row.name, most, first])
        while True:
            event = self._event(self.limits.call)
            if isinstance(event, str):
                row.found.append([at[2], at[3], f"the call {event}" if at[0] else f"making the arguments {event}"])
                row.add("failed")
                self.stop()
                return at[1] + 1 if at[0] else None
            if event[0] == "at":
                at = event
                if at[4]:
                    row.overloads.append(at[4])
                if time.monotonic() > end:
                    row.found.append([at[2], at[3], f"not compared from this call on: {self.limits.name:.0f} s for one name"])
                    row.add("failed")
                    self.stop()
                    return None
            elif event[0] == "passed":
                row.add("passed", event[1])
            elif event[0] in ("done", "broken"):
                if event[0] == "broken":
                    row.found.append([row.name, "", f"making the calls failed: {event[1]}"])
                    row.add("failed")
                return None
            else:
                row.add(event[0])
                if event[0] == "failed":
                    row.found.append([at[2], at[3], event[1]])

    def _send(self, request: list) -> None:
        if self.process is None or self.process.poll() is not None:
            self._start()
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def _event(self, limit: float) -> list | str:
        """The next event, or what happened to the process instead."""
        end = time.monotonic() + limit
        while b"\n" not in self.buffer:
            if not self.selector.select(max(0.0, end - time.monotonic())):
                return f"took more than {limit:.0f} s"
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return f"ended the process ({self.process.wait()})"
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def _start(self) -> None:
        in_process = peer.BUILD / "tests/python"  # the package of the tests, if it is built: no other process takes part
        package = in_process if (in_process / "teletensor").exists() else peer.BUILD / "python"
        environment = {**peer.environment(package), "TELETENSOR_IN_PROCESS": "1" if package is in_process else ""}
        self.buffer = b""
        folder = peer.BUILD / "differential"  # calls write files under the names that they are given
        folder.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=folder
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        event = self._event(self.limits.start)
        if isinstance(event, str):
            raise RuntimeError(f"the worker {event}; see its errors with `{' '.join(self.command)}`")

    def stop(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.selector.close()
            self.process = None


def fingerprint(most: int) -> str:
    """A hash of the sources and the engine on which rows depend."""
    found = hashlib.sha256(str(most).encode())
    for folder in (peer.ROOT / "python/teletensor", peer.ROOT / "tests/conformance"):
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".yaml", ".txt")):
            if path.name != "reasons.yaml":
                found.update(path.read_bytes())
    for path in sorted(peer.BUILD.glob("python/teletensor/_C*.so")):
        found.update(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    return found.hexdigest()


def _row_of(line: str) -> Row | None:
    """The row of a line; None if the writer was stopped within it."""
    try:
        return Row(**json.loads(line))
    except json.JSONDecodeError:
        return None


class Journal:
    """Rows that are done, one line of JSON each, behind a line with the fingerprint."""

    def __init__(self, path: Path, mark: str, keep: bool = False):
        """`keep`: use rows of other sources too."""
        self.path, self.lock, self.rows = path, threading.Lock(), {}
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and (keep or lines[0] == mark):
            for row in map(_row_of, lines[1:]):
                if row is not None:
                    self.rows[row.name] = row
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in [mark, *(json.dumps(vars(r)) for r in self.rows.values())]))

    def add(self, row: Row) -> None:
        with self.lock:
            self.rows[row.name] = row
            with self.path.open("a") as file:
                file.write(json.dumps(vars(row)) + "\n")


def run(names: list[str], most: int, workers: list[Worker], journal: Journal, done: Callable[[Row], None]) -> None:
    """Compares the names that the journal lacks; `done` is called after each."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        if name not in journal.rows:
            todo.put(name)

    def drive(worker: Worker) -> None:
        try:
            while not stopped.is_set():
                row = worker.row(todo.get_nowait(), most)
                journal.add(row)
                done(row)
        except queue.Empty:
            pass
        finally:
            worker.stop()

    stopped = threading.Event()
    threads = [threading.Thread(target=drive, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        stopped.set()
        raise
