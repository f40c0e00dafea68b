"""An engine whose process is replaced or killed while its clients run, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from teletensor import _C
from tests.conftest import BUILD, client_environment

ENGINE = BUILD / "bin/teletensord"


class ReplacedEngine:
    """Its process changes; `pid` asks it for the present one."""

    def __init__(self, folder: Path, *options: str, program: Path = ENGINE, **variables: str):
        self.address = f"unix:{folder}/engine.sock"
        self.log = folder / "engine.log"
        self._command = [str(program), "--listen", self.address, *options]
        if "--token-file" not in options:
            self._command.append("--no-auth")
        self._environment = {**os.environ, "TELETENSOR_CUDA_PLUGIN": "", **variables}
        self._processes: list[subprocess.Popen] = []
        self.start()

    def start(self) -> None:
        """Starts a process; call it again after kill()."""
        with self.log.open("a") as output:
            process = subprocess.Popen(self._command, stdout=output, stderr=output, env=self._environment)
        self._processes.append(process)
        listening = self.log.read_text().count("listening on")
        for _ in range(1000):
            if process.poll() is not None or self.log.read_text().count("listening on") > listening:
                break
            time.sleep(0.01)
        assert process.poll() is None, self.log.read_text()

    def call(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Runs teletensor's command line."""
        command = [sys.executable, "-m", "teletensor.cli", "--address", self.address, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env={**client_environment(), **variables})  # fmt: skip

    def _admin(self, deadline: float = 5.0):
        return _C.Admin(
            self.address, deadline_seconds=deadline, admin_token=os.environ.get("TELETENSOR_ADMIN_TOKEN", "")
        )

    @property
    def pid(self) -> int:
        return int(json.loads(self._admin().status())["pid"])

    def upgrade(self, wait: float = 10.0, force: bool = False) -> dict:
        return json.loads(self._admin(60 + wait).upgrade(wait, force))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        with contextlib.suppress(ConnectionError, ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        self._wait()

    def _wait(self) -> None:
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        # A process that has replaced another one is no child of this one.
        for _ in range(500):
            if not self._is_running():
                return
            time.sleep(0.02)
        raise AssertionError("the engine is still running")

    def _is_running(self) -> bool:
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if self.address.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    name = (entry / "comm").read_text().strip()
                    if state != "Z" and name.startswith("teletensord"):
                        return True
        return False

    def client(self, code: str, *arguments: str) -> subprocess.Popen:
        """Runs Python code, whose first argument is the engine's address."""
        return subprocess.Popen([sys.executable, "-c", code, self.address, *arguments], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=client_environment())  # fmt: skip

    def training(self, steps: int, *arguments: str) -> subprocess.Popen:
        code = "import runpy; runpy.run_module('tests.python.session.continued_training', run_name='__main__')"
        return self.client(code, str(steps), *arguments)


@contextlib.contextmanager
def replaced_engine(folder: Path, *options: str, **keywords):
    engine = ReplacedEngine(folder, *options, **keywords)
    try:
        yield engine
    finally:
        engine.stop()


def result_of(client: subprocess.Popen) -> str:
    """The client's last line."""
    output, errors = client.communicate(timeout=120)
    assert client.returncode == 0, errors
    return output.splitlines()[-1]
