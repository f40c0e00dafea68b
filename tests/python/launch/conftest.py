"""Runs ``teletensor launch`` as users do, as a process. The ranks' scripts do not import teletensor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import client_environment

# Variables that would change what a launcher does.
_PREFIXES = (
    "PET_",
    "TELETENSOR_GROUP",
    "TELETENSOR_THREADS",
    "OMP_",
    "SLURM_",
    "OMPI_",
    "NO_COLOR",
    "MASTER_",
    "CUDA_VISIBLE",
)


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def eventually(condition, what: str):
    """Waits for a condition; returns its value. The limit only prevents a test that hangs."""
    end = time.monotonic() + 120
    while not (value := condition()):
        assert time.monotonic() < end, f"expected within 120 s: {what}"
        time.sleep(0.02)
    return value


class Launch:
    """A launcher. `folder` contains the script and what the ranks write."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], environment: dict[str, str], module: str,
                 **keywords):  # fmt: skip
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=environment, cwd=folder, text=True,
            # The launcher ignores signals that its parent ignores, as nohup does.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords},
        )  # fmt: skip

    def finish(self) -> tuple[int, str, str]:
        """Returns the exit code and both outputs."""
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err

    def send(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait_for(self, name: str, count: int = 1) -> list[str]:
        """Waits until `count` files match the pattern and are complete; returns their texts."""

        def texts():
            found = [p.read_text() for p in sorted(self.folder.glob(name))]
            return found if len(found) >= count and all(t.endswith("\n") for t in found) else None

        return eventually(texts, f"{count} files {name}")

    def pids(self, count: int) -> list[int]:
        """Waits for the ids that `count` processes wrote to files pid.*."""
        return [int(text) for text in self.wait_for("pid.*", count)]


@pytest.fixture
def launch(tmp_path):
    """Starts launchers with a script, and ends what is left of them."""
    started: list[Launch] = []

    def start(
        *arguments: str, script: str | None = None, name: str = "script.py", environment=None,
        module: str = "teletensor.launch", **keywords,
    ) -> Launch:  # fmt: skip
        if script is not None:
            (tmp_path / name).write_text(PRELUDE + script)
        base = {k: v for k, v in client_environment().items() if not k.startswith(_PREFIXES)}
        started.append(Launch(tmp_path, arguments, {**base, **(environment or {})}, module, **keywords))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        for stream in (one.process.stdout, one.process.stderr):
            if stream:
                stream.close()


# Names for the ranks' scripts.
PRELUDE = """
import json, os, signal, subprocess, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def record(name, text):
    with open(f".{name}.{os.getpid()}", "w") as file:  # matches no pattern of a test
        file.write(f"{text}\\n")
    os.rename(file.name, name)

def record_pid(name=rank):
    record(f"pid.{name}", os.getpid())

def record_environment(name=rank):
    record(f"environment.{name}", json.dumps(dict(os.environ)))

def wait_for(name, count=1):
    import glob
    while len(glob.glob(name)) < count:
        time.sleep(0.02)
"""


def environments(folder: Path) -> dict[int, dict[str, str]]:
    """What record_environment() wrote, by rank."""
    return {
        int(p.suffix[1:]): json.loads(p.read_text()) for p in folder.glob("environment.*") if p.suffix[1:].isdigit()
    }


def all_ended(pids: list[int]) -> None:
    eventually(lambda: not any(alive(pid) for pid in pids), f"the end of the processes {pids}")


def processes_in(folder: Path) -> set[int]:
    """The processes whose working folder is the test's, other than this one."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if os.readlink(f"/proc/{entry}/cwd") == str(folder) and alive(int(entry)):
                    found.add(int(entry))
            except OSError:
                pass
    return found
