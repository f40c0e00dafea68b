"""The processes that run a test together, restarted after a test that failed."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
SIMULATED_GPUS = BUILD / "tests/libteletensor_cuda_simulated.so"

# Errors that the other ranks report as a consequence of a failed rank.
CONSEQUENCES = "did not arrive|has left the group|barrier timeout|rank [0-9]+ of the group .* failed"


@dataclass(frozen=True)
class Setup:
    """The setup of a test: a backend and a number of ranks, each with an engine with or without simulated GPUs."""

    backend: str
    size: int
    gpus: bool

    @property
    def label(self) -> str:
        """The label in the table."""
        return f"{self.backend}, {self.size} ranks, {'simulated GPUs' if self.gpus else 'CPU'}"


class Ranks:
    """The ranks of a setup, started when a test runs."""

    def __init__(self, setup: Setup, file: Path, log: Path):
        self._setup, self._file, self._log = setup, file, log
        self._shared = tempfile.mktemp()  # a second group's file
        self._processes: list[subprocess.Popen] = []

    def _start(self) -> None:
        environment = {
            **os.environ, "PYTHONPATH": f"{BUILD / 'python'}:{ROOT}", "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord"),
            "TELETENSOR_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
            "BACKEND": self._setup.backend, "WORLD_SIZE": str(self._setup.size),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
            "TELETENSOR_CUDA_PLUGIN": str(SIMULATED_GPUS) if self._setup.gpus else "",
            "TELETENSOR_SIMULATED_DEVICES": str(self._setup.size), "INIT_METHOD": f"file://{self._shared}",
        }  # fmt: skip
        for name in ("RANK", "TELETENSOR_ADDRESS"):
            environment.pop(name, None)
        command = [sys.executable, "-m", f"{__package__}.worker", str(self._file)]
        with self._log.open("a") as log:
            self._processes = [
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=ROOT
                )
                for _ in range(self._setup.size)
            ]
        for rank in self._processes:  # their modules are loaded before a test's time starts
            self._send(rank, name="?")
        self._names = [json.loads(rank.stdout.readline()) for rank in self._processes][0]

    def _send(self, process: subprocess.Popen, **call: object) -> None:
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()

    def names(self) -> list[list[str]]:
        """Class and name of every test."""
        if not self._processes:
            self._start()
        return self._names

    def run(self, cls: str, name: str, limit: float) -> dict:
        """Runs a test on all ranks, for at most `limit` seconds; returns its state and reason."""
        if not self._processes:
            self._start()
        ranks = self._processes if cls == "DistributedTest" else self._processes[:1]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # blocked ranks still use it
            for subfolder in ("barrier", "test_dir"):
                Path(folder, subfolder).mkdir()
            for number, rank in enumerate(ranks):
                self._send(rank, **{"class": cls, "name": name, "rank": number, "folder": folder})
            replies = self._replies(ranks, limit)
        result = combine(replies, limit)
        if result["state"] in ("failed", "absent"):
            self.stop()
        return result

    def _replies(self, ranks: list[subprocess.Popen], limit: float) -> list[dict | None]:
        """Each rank's reply, None if there is none in time. After a failure the others have 3 seconds."""
        replies: list[dict | None] = [None] * len(ranks)
        deadline = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            for number, rank in enumerate(ranks):
                selector.register(rank.stdout, selectors.EVENT_READ, number)
            while selector.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    line = key.fileobj.readline()
                    code = None if line else ranks[key.data].wait()
                    reply = json.loads(line) if line else {"state": "failed", "reason": f"the process ended with code {code}"}
                    replies[key.data] = reply
                    selector.unregister(key.fileobj)
                    if reply["state"] in ("failed", "absent"):
                        deadline = min(deadline, time.monotonic() + 3)
        return replies

    def stop(self) -> None:
        """Ends the processes, and with them their engines."""
        for rank in self._processes:
            rank.kill()
        for rank in self._processes:
            rank.wait()
            rank.stdin.close()
            rank.stdout.close()
        self._processes = []


def combine(replies: list[dict | None], limit: float) -> dict:
    """The result of a test from its ranks' replies: the worst state, with the first reason that is not a consequence."""
    received = [(number, reply) for number, reply in enumerate(replies) if reply is not None]
    for state in ("absent", "failed"):
        found = [(number, reply) for number, reply in received if reply["state"] == state]
        causes = [f for f in found if not re.search(CONSEQUENCES, f[1]["reason"])]
        if found:
            number, reply = (causes or found)[0]
            return {**reply, "rank": number}
    if len(received) < len(replies):
        late = [str(number) for number, reply in enumerate(replies) if reply is None]
        return {"state": "failed", "reason": f"rank {', '.join(late)} did not finish within {limit:g} s"}
    if all(reply["state"] == "skipped" for _, reply in received):
        return received[0][1]
    return {"state": "passed", "reason": ""}
