"""Engine: a daemon to which faults happen. Training: a trainer process on it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.adversary.wire import Peer
from tests.sockets import is_listening

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
LEASE = 4  # seconds
PATIENCE = 60  # seconds after which a wait is a hang


def wait_for(condition, what: str) -> None:
    """Waits until the condition holds. Raises TimeoutError, with `what` was awaited, after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE} s for {what}")
        time.sleep(0.02)


@dataclass(frozen=True)
class Usage:
    """What an engine holds."""

    bytes: int  # allocated for tensors
    descriptors: int
    threads: int
    resident: int  # bytes

    def excess(self, before: Usage) -> str:
        """What is more than before, beyond what gRPC and the allocators keep for reuse, independent of clients' number; empty
        if nothing.
        """
        checks = [("bytes of tensors", self.bytes - before.bytes, 0),
                  ("descriptors", self.descriptors - before.descriptors, 2),
                  ("threads", self.threads - before.threads, 8),
                  ("resident bytes", self.resident - before.resident, 64 << 20)]
        return "; ".join(f"{more} {name} left" for name, more, allowed in checks if more > allowed)


class Engine:
    """A daemon on a unix socket and a TCP port, with checkpoints below `folder`. Call stop() at the end.

    `daemon` is the program; by default that of the build.
    """

    def __init__(self, folder: Path, *options: str, lease: float = LEASE, daemon: Path = BUILD / "bin/teletensord",
                 **environment: str):
        self.folder, self._lease, self._daemon = folder, lease, daemon
        self.socket = folder / "engine.sock"
        self.checkpoints = folder / "checkpoints"
        self.checkpoints.mkdir(exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.place = f"127.0.0.1:{probe.getsockname()[1]}"
        self._options, self._environment = options, environment
        self.log = folder / "engine.log"
        self.start()

    @property
    def address(self) -> str:
        """The address of the unix socket."""
        return f"unix:{self.socket}"

    def start(self) -> None:
        """Starts the daemon, again at the same addresses."""
        self.socket.unlink(missing_ok=True)
        command = [self._daemon, "--listen", self.address, "--listen", self.place, "--no-auth", "--lease",
                   str(self._lease), "--checkpoint-root", self.checkpoints, *self._options]
        environment = {**os.environ, "TELETENSOR_CUDA_PLUGIN": "", **self._environment}
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        wait_for(lambda: is_listening(self.socket) or self.process.poll() is not None, "the engine's start")
        if self.process.poll() is not None:
            raise RuntimeError(f"teletensord exited with {self.process.returncode}: {self.log.read_text()[-2000:]}")

    def signal(self, number: int) -> None:
        """Sends a signal to the daemon."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kills the daemon by SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> str:
        """Ends the daemon by SIGTERM. Returns a complaint if it did not end properly."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return "the engine did not end"
        return f"the engine ended with {code}: {self.log.read_text()[-500:]}" if code else ""

    def usage(self) -> Usage:
        """What the daemon holds now."""
        peer = Peer(self.address, "")
        try:
            status = peer.status()
        finally:
            peer.close()
        process = Path(f"/proc/{self.process.pid}")
        resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        return Usage(sum(d.memory.allocated for d in status.devices), len(list((process / "fd").iterdir())),
                     len(list((process / "task").iterdir())), resident)

    def leftovers(self, before: Usage) -> str:
        """What the engine still holds more than before, once all leases have expired; empty if nothing."""
        deadline = time.monotonic() + self._lease + 10
        while (excess := self.usage().excess(before)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return excess


class Training:
    """A trainer on an engine; its events are read by a thread."""

    def __init__(self, address: str, steps: int, *options: str, **environment: str):
        path = os.pathsep.join([str(BUILD / "python"), str(ROOT)])
        variables = {**os.environ, "PYTHONPATH": path, "TELETENSOR_ADDRESS": address, **environment}
        command = [sys.executable, "-m", "tests.chaos.trainer", str(steps), *options]
        self.events: list[dict] = []
        self.step = 0
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=variables,
                                        cwd=ROOT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            self.step = event.get("step", self.step)

    def count(self, event: str) -> int:
        """How often the trainer has reported an event."""
        return sum(e["event"] == event for e in self.events)

    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    def is_stopped(self) -> bool:
        """Whether the process has stopped itself."""
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def reach(self, step: int) -> None:
        """Waits until the trainer has finished a step, or has ended."""
        wait_for(lambda: self.step >= step or not self.is_running(), f"step {step}")

    def kill(self) -> None:
        """Kills the trainer by SIGKILL."""
        self.process.kill()
        self.process.wait()

    def result(self) -> dict:
        """Waits for the end. Returns the last event, or one with the `reason` why there is none."""
        try:
            code = self.process.wait(10 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return {"reason": f"the trainer hangs at step {self.step}"}
        self._reader.join()
        if code == 0:
            return self.events[-1]
        self._errors.seek(0)
        return {"reason": f"the trainer ended with {code} at step {self.step}: {self._errors.read()[-1000:]}"}


def pause(engine: Engine, seconds: float) -> None:
    """Stops the daemon's process for a time."""
    engine.signal(signal.SIGSTOP)
    time.sleep(seconds)
    engine.signal(signal.SIGCONT)
