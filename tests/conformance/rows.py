"""Rows of a table, one per name, computed by worker processes (worker_loop.serve_rows)."""

from __future__ import annotations

import json
import queue
import selectors
import subprocess
import threading
from collections.abc import Callable

from rich.console import Console

from . import peer

COUNTS = ("passed", "failed", "on_purpose", "skipped")


class Worker:
    """A process that computes rows; restarted if it died or timed out. `module`: the Python module that it runs."""

    def __init__(self, python: str, limit: float, module: str):
        self.python, self.limit, self.module = python, limit, module
        self.process: subprocess.Popen | None = None

    def ask(self, name: str, most: int) -> dict:
        if self.process is None or self.process.poll() is not None:
            self._start()
        self.process.stdin.write(json.dumps([name, most]) + "\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(self.limit) else None
        if line:
            return json.loads(line)
        status = "took too long" if line is None else f"ended the process ({self.process.wait()})"
        self.stop()
        return {"name": name, "broken": status}

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [self.python, "-m", self.module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=peer.environment(), cwd=peer.ROOT,
        )  # fmt: skip

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def run(names: list[str], most: int, make: Callable[[], Worker], workers: int, judge: Callable, console: Console) -> list[dict]:
    """Each name's row, in the order of the names, computed by several workers and completed by `judge`."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    rows: dict[str, dict] = {}

    def drive() -> None:
        worker = make()
        while True:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                break
            rows[name] = judge(worker.ask(name, most))
        worker.stop()

    threads = [threading.Thread(target=drive) for _ in range(workers)]
    with console.status("comparing with PyTorch"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [rows[name] for name in names]
