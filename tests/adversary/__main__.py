"""Trains a victim on a daemon during each attack of attacks.py, and checks that victim and daemon are unharmed.

Usage: ``make adversary`` or ``python -m tests.adversary [--steps 600] [--seconds 15] [--only NAME]``; ``--build
build-tsan`` runs the daemon of another build. The victim trains for the number of steps, or for the seconds and then to
the next comparison of weights where an attack slows it down. Prints one row per attack: whether the victim's weights are
bit-identical to those of an undisturbed run at every comparison, its step times compared with those of that run, and the
growth of the daemon's memory after the attackers have exited and their leases have expired. Exits with 1 if the victim was
harmed or memory was not freed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.adversary.attacks import ATTACKS
from tests.adversary.wire import Peer
from tests.sockets import is_listening

ROOT = Path(__file__).resolve().parent.parent.parent
LEASE = 1  # second
SESSION_LIMIT = 64 << 20
# A principal with limits, and the maximum growth of the daemon's resident memory during the attacks that use it.
LIMITED = {"name": "limited", "memory": 50 << 20, "sessions": 101}
MOST_HELD = {"small_tensors": 128 << 20}
MOST_GROWTH = 64 << 20  # maximum growth of the daemon's resident memory after an attack
KEPT = 15  # seconds; the daemon keeps unused host memory for ten
MOST_STEP = 20.0  # seconds; maximum duration of a victim's step, on any machine


@dataclass
class Training:
    """The report of a victim."""

    digests: dict[str, str]  # of the weights after a number of steps
    seconds: list[float]

    def percentile(self, p: float) -> float:
        """The p-quantile of the step times."""
        return sorted(self.seconds)[min(int(len(self.seconds) * p), len(self.seconds) - 1)]


def compile_operators(folder: Path) -> Path:
    """Builds the custom operators of tests/python/extension; returns their folder."""
    operators = folder / "operators"
    operators.mkdir(mode=0o755)
    compiler = [*os.environ.get("CXX", "c++").split(), "-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    source = ROOT / "tests/python/extension/operators.cc"
    subprocess.run([*compiler, f"-I{ROOT / 'engine/extension'}", str(source), "-o", str(operators / "check.so")], check=True)
    return operators


class Engine:
    """A daemon listening on a unix socket (for the victim) and a TCP port (for the attackers), with custom operators, the
    devices of a device library and a model repository.
    """

    def __init__(self, build: Path, folder: Path):
        self.folder = folder
        self.is_sanitized = is_sanitized(build)
        self.log = open(folder / "engine.log", "w+")  # noqa: SIM115 - lives as long as the process
        self.socket = f"unix:{folder / 'engine.sock'}"
        with __import__("socket").socket() as free:
            free.bind(("127.0.0.1", 0))
            self.tcp = f"127.0.0.1:{free.getsockname()[1]}"
        flags = ["--listen", self.socket, "--listen", self.tcp, "--token-file", str(folder / "token"),
                 "--admin-token-file", str(folder / "admin-token"), "--lease", str(LEASE),
                 "--session-memory-limit", str(SESSION_LIMIT), "--peer-networks", "127.0.0.0/8",
                 "--principals", str(folder / "principals.json"),
                 "--operators", str(compile_operators(folder)), "--models", str(folder / "models"), "--model-poll", "0"]
        if (devices := build / "tests/libexample_device.so").exists():
            flags += ["--devices", str(devices)]
        (folder / "models").mkdir()
        self.limited_token = os.urandom(32).hex()
        entry = {**LIMITED, "token_sha256": hashlib.sha256(self.limited_token.encode()).hexdigest()}
        (folder / "principals.json").write_text(json.dumps({"principals": [entry]}))
        self.process = subprocess.Popen([str(build / "bin/teletensord"), *flags], stdout=self.log, stderr=self.log,
                                        env={**os.environ, "TELETENSOR_CUDA_PLUGIN": ""})
        deadline = time.monotonic() + 30
        while not is_listening(folder / "engine.sock"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the daemon did not start: {(folder / 'engine.log').read_text()}")
            time.sleep(0.05)
        self.token, self.admin_token = ((folder / name).read_text().strip() for name in ("token", "admin-token"))

    @property
    def resident(self) -> int:
        """Resident memory in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def allocated(self) -> int:
        """Bytes allocated for tensors, queried over the wire, which also checks that the engine still replies."""
        status = Peer(self.socket, self.admin_token).status()
        return sum(d.memory.allocated for d in status.devices)

    def settle(self) -> None:
        """Waits until no session is left: all leases have expired and their memory is freed."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = Peer(self.socket, self.admin_token).status()
            if not status.sessions:
                break
            time.sleep(0.2)
        time.sleep(1)

    def environment(self, build: Path) -> dict[str, str]:
        """The environment of a real client of this engine."""
        path = os.pathsep.join([str(build / "python"), str(ROOT)])
        return {**os.environ, "PYTHONPATH": path, "TELETENSOR_ADDRESS": self.socket, "TELETENSOR_TOKEN": self.token,
                "ADVERSARY_LIMITED_TOKEN": self.limited_token,
                "ADVERSARY_OTHER_TOKEN": self.admin_token}  # of another principal, for attacks that check how it fares

    def stop(self) -> int:
        """Terminates the daemon; returns its exit status."""
        self.process.terminate()
        return self.process.wait(30)


def train(engine: Engine, client_build: Path, steps: int, seconds: float) -> Training:
    """Runs a victim to completion."""
    command = [sys.executable, "-m", "tests.adversary.victim", str(steps), str(seconds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=engine.environment(client_build), timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"the victim failed: {done.stderr[-3000:]}")
    report = json.loads(done.stdout.splitlines()[-1])
    return Training(report["digests"], report["seconds"])


@dataclass
class Outcome:
    """The result of an attack."""

    attack: str
    same: bool
    training: Training | None
    growth: int
    left: int
    complaint: str = ""

    @property
    def ok(self) -> bool:
        """Whether victim and daemon are unharmed."""
        return not self.complaint


def is_sanitized(build: Path) -> bool:
    """Whether the build has a sanitizer, whose own memory counts as the daemon's."""
    return re.search(r"^TT_SANITIZE:STRING=.+$", (build / "CMakeCache.txt").read_text(), re.MULTILINE) is not None


def run_attack(engine: Engine, client_build: Path, attack: str, args: argparse.Namespace, alone: Training) -> Outcome:
    """Trains a victim while two attackers run; then checks the weights, the memory that is still in use, and the
    daemon.
    """
    engine.settle()
    resident, allocated = engine.resident, engine.allocated()
    command = [sys.executable, "-m", "tests.adversary.attacks", attack, engine.tcp, engine.token]
    attackers = [subprocess.Popen([*command, str(args.seed + i)], cwd=ROOT, env=engine.environment(client_build),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True) for i in range(2)]
    for attacker in attackers:
        attacker.stdout.readline()  # "ready", or the end of a process that failed
    time.sleep(1)
    training, complaint = None, ""
    try:
        training = train(engine, client_build, args.steps, args.seconds)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        complaint = str(error)
    held = engine.resident - resident
    for attacker in attackers:
        if attacker.poll() is not None:
            complaint = complaint or f"an attacker ended by itself: {attacker.stderr.read()[-2000:]}"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(attacker.pid, signal.SIGKILL)  # including the clients that it started
        attacker.wait()
    if engine.process.poll() is not None:
        return Outcome(attack, False, training, 0, 0, f"the daemon ended with {engine.process.returncode}")
    engine.settle()
    deadline = time.monotonic() + KEPT
    while (growth := engine.resident - resident) > MOST_GROWTH and time.monotonic() < deadline:
        time.sleep(0.5)
    left = engine.allocated() - allocated
    same = training is not None and bool(training.digests) and training.digests.items() <= alone.digests.items()
    checks = [(same, "the victim's weights differ"), (left == 0, f"{left} bytes stay allocated"),
              (growth <= MOST_GROWTH or engine.is_sanitized, f"the daemon's memory grew by {growth >> 20} MB"),
              (held <= MOST_HELD.get(attack, held) or engine.is_sanitized, f"the attackers held {held >> 20} MB"),
              (training is not None and max(training.seconds) < MOST_STEP, "a step of the victim took too long")]
    complaint = complaint or "; ".join(what for ok, what in checks if not ok)
    return Outcome(attack, same, training, growth, left, complaint)


def show(outcomes: list[Outcome], alone: Training, console: Console) -> None:
    """One line per attack."""
    table = Table("attack", "weights", "steps", "step p50 / p99 / max, ms", "p50, relative to undisturbed", "memory left", "verdict")
    for o in outcomes:
        times = [o.training.percentile(0.5), o.training.percentile(0.99), max(o.training.seconds)] if o.training else []
        table.add_row(o.attack, "identical" if o.same else "[red]differ[/red]", str(len(o.training.seconds)) if o.training else "",
                      " / ".join(f"{t * 1e3:.1f}" for t in times),
                      f"{times[0] / alone.percentile(0.5):.1f}x" if times else "", f"{o.growth / 2**20:+.0f} MB",
                      "ok" if o.ok else f"[red]{o.complaint}[/red]")
    console.print(table)
    bad = sum(not o.ok for o in outcomes)
    console.print(f"adversary: {len(outcomes)} attacks, {bad} harmful")


def main() -> int:
    """Runs the attacks; returns 1 if an attack harmed the victim or the daemon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="training steps of the victim (default: 600)")
    parser.add_argument("--seconds", type=float, default=15, help="duration of a slowed training (default: 15)")
    parser.add_argument("--only", default="", help="run the attacks whose name contains this")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the daemon's build directory (default: build)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random attacks")
    args = parser.parse_args()
    console, client = Console(width=None if sys.stdout.isatty() else 120), ROOT / "build"
    names = [name for name in ATTACKS if args.only in name]
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(args.build.resolve(), Path(folder))
        alone = train(engine, client, args.steps, float("inf"))
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("attacks", total=len(names))
            for name in names:
                progress.update(task, description=name)
                outcomes.append(run_attack(engine, client, name, args, alone))
                progress.advance(task)
                if engine.process.poll() is not None:
                    break
        show(outcomes, alone, console)
        log = (Path(folder) / "engine.log").read_text(errors="replace")
        if engine.process.poll() is None and engine.stop() != 0:
            console.print("[red]the daemon did not exit cleanly[/red]")
            outcomes[-1].complaint = "the daemon did not exit cleanly"
        for mark in ("ThreadSanitizer", "AddressSanitizer", "runtime error:"):
            if mark in log:
                console.print(log[log.index(mark):][:6000], markup=False)
                outcomes[-1].complaint = f"{mark} reported"
    return int(any(not o.ok for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
