"""RelayProcess: a network between a client and an engine (`build/bin/link_relay`), for tests and benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

BUILD = Path(os.environ.get("TELETENSOR_BUILD", Path(__file__).resolve().parents[2] / "build"))


class RelayProcess:
    """A relay to `target`. `conditions` are link_relay's options: `delay=10`, `rate=(100, 1000)` for two directions.

    A context manager. The client must not use shared memory (TELETENSOR_SHARED_MEMORY=0), which would bypass the relay.
    """

    def __init__(self, target: str, **conditions: float | tuple[float, float] | str):
        command = [str(BUILD / "bin/link_relay"), target]
        for name, value in conditions.items():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            command.append(f"--{name.replace('_', '-')}={text}")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(f"link_relay exited with {self.process.wait()}")

    def command(self, line: str) -> str:
        """Executes a command of link_relay; returns its answer."""
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"link_relay: {line}: {answer or 'it has exited'}")
        return answer

    def stats(self) -> dict:
        """The number of `connections`, and `bytes` and `reads`: two numbers, towards the target and back."""
        return json.loads(self.command("stats"))

    def stop(self) -> None:
        """Ends the relay and its connections."""
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def __enter__(self) -> RelayProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
