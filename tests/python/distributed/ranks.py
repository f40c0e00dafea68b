"""Ranks: processes with a private engine each, which run functions of the *_cases modules of the subfolders as a group.

The processes are started once and form a new group for each call, since starting an engine takes longer than most cases.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from ...conftest import ROOT, client_environment

TIMEOUT = 45  # seconds until a call is considered to hang


def free_port() -> int:
    """Returns a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RankError(AssertionError):
    """A function failed on a rank; the message contains the rank's traceback."""


class Rank:
    """One process. Its command follows the words of `prefix`, for example ``nsenter``'s."""

    def __init__(self, prefix: Sequence[str] = (), **environment: str):
        command = [*prefix, sys.executable, "-m", f"{__package__}.worker"]
        environment = client_environment(TELETENSOR_THREADS="1", OMP_NUM_THREADS="1", **environment)
        environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], str(ROOT)])
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TELETENSOR_ADDRESS"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT
        )

    def start(self, function: Callable, *arguments, **options) -> None:
        """Sends a call. The function's module must be importable in the process."""
        call = {"module": function.__module__, "name": function.__name__, "arguments": arguments, "options": options}
        self.process.stdin.write(json.dumps(call).encode() + b"\n")
        self.process.stdin.flush()

    def result(self, timeout: float = TIMEOUT):
        """Returns the call's result, which was sent as JSON. Raises RankError if it raised an exception."""
        readable, _, _ = select.select([self.process.stdout], [], [], timeout)
        if not readable:
            self.process.kill()
            raise RankError(f"no result after {timeout} s")
        line = self.process.stdout.readline()
        if not line:
            raise RankError(f"the process ended with code {self.process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise RankError(reply["error"])
        return reply["result"]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


class Ranks:
    """Processes that run functions together. After a test that ended one of them, all are started again."""

    def __init__(self, count: int, **environment: str):
        self._count, self._environment = count, environment
        self._start()

    def _start(self) -> None:
        self.all = [Rank(**self._environment) for _ in range(self._count)]
        self._port = free_port()

    def run(self, size: int, function: Callable, **options) -> list:
        """Runs ``function(rank, size, **options)`` on `size` ranks in a new default group; returns the results by rank."""
        return self.run_without_group(size, run_in_group, function.__module__, function.__name__, self._port, options)

    def run_without_group(self, size: int, function: Callable, *arguments, **options) -> list:
        """Runs ``function(rank, size, *arguments, **options)`` on `size` ranks."""
        for rank in range(size):
            self.all[rank].start(function, rank, size, *arguments, **options)
        results, errors = [], []
        deadline = time.monotonic() + TIMEOUT
        for rank in range(size):
            try:
                results.append(self.all[rank].result(max(1, deadline - time.monotonic())))
            except RankError as error:
                errors.append(f"rank {rank}: {error}")
        if errors:
            self.stop()
            self._start()
            raise RankError("\n".join(errors))
        return results

    def stop(self) -> None:
        for rank in self.all:
            rank.stop()


def run_in_group(rank: int, size: int, module: str, name: str, port: int, options: dict):
    """Runs a function in a new default group."""
    import importlib

    import teletensor.distributed as dist

    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank)
    try:
        return getattr(importlib.import_module(module), name)(rank, size, **options)
    finally:
        dist.destroy_process_group()


def describe_error() -> str:
    return traceback.format_exc()
