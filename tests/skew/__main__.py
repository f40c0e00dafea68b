"""Runs the package of the kept commit (commit.txt) with this tree's engine, and this tree's client with that package's engine.

Usage: ``make skew-test`` or ``python -m tests.skew [--wheel FILE]``. Builds a wheel of the commit in build/skew, unless it is
there. Prints a row per pair: a training whose connection is cut, a training that another client continues from its checkpoint,
and published tensors. All weights must be bit-identical to those of this tree's client on the same engine, and each instruction
executed once. Exits with 1 if something did not hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos.engine import BUILD, Engine, Training
from tests.relay.process import RelayProcess
from tests.skew.operators import ROOT, changes, current

FOLDER = BUILD / "skew"
COMMIT = (Path(__file__).parent / "commit.txt").read_text().strip()
SOURCE = FOLDER / f"source-{COMMIT[:12]}"
STEPS, CUTS = 200, 5


def build_wheel() -> Path:
    """Returns the commit's wheel: of the client, beside that of its engine, or of both."""
    folder = FOLDER / COMMIT[:12]
    if wheels := list(folder.glob("teletensor-*.whl")):
        return wheels[0]
    if not SOURCE.exists():
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", SOURCE, COMMIT], cwd=ROOT, check=True)
    for project in ("deploy/engine_wheel", "."):
        if (SOURCE / project / "pyproject.toml").exists():
            command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, f"./{project}"]
            # As in deploy/build.py: the next clone finds the objects in ccache.
            environment = {**os.environ, "CXX": "c++", "CCACHE_BASEDIR": str(SOURCE), "CCACHE_NOHASHDIR": "1"}
            subprocess.run(command, cwd=SOURCE, env=environment, check=True)
    return next(folder.glob("teletensor-*.whl"))


def unpack(wheel: Path) -> Path:
    """Returns a folder with the packages of a wheel, and of the engine's wheel beside it."""
    folder = FOLDER / f"package-{wheel.stem}"
    if not folder.exists():
        for each in (wheel, *wheel.parent.glob("teletensor_engine-*.whl")):
            with zipfile.ZipFile(each) as file:
                file.extractall(folder)
        engine_of(folder).chmod(0o755)
    return folder


def engine_of(folder: Path) -> Path:
    """teletensord in an unpacked wheel: of its own package, or in the client's as in version 0.1.0's first wheels."""
    return next(path for name in ("teletensor_engine", "teletensor") if (path := folder / name / "bin/teletensord").exists())


class Pair:
    """Clients of one version on an engine of another one."""

    def __init__(self, package: Path, other: Path, daemon: Path):
        self.package, self.other, self.daemon = package, other, daemon
        self.complaints: list[str] = []

    @staticmethod
    def _environment(package: Path) -> dict[str, str]:
        return {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]), "TELETENSOR_SHARED_MEMORY": "0"}

    def _weights(self, result: dict) -> str:
        """The digest of a finished training."""
        if "reason" in result:
            self.complaints.append(result["reason"])
            return ""
        if result["count"] != STEPS:
            self.complaints.append(f"{STEPS} increments were executed {result['count']} times")
        return result["digest"]

    def resume(self) -> str:
        """Trains while the connection is cut; returns the digest of the weights."""
        with tempfile.TemporaryDirectory() as folder:
            engine = Engine(Path(folder), lease=30, daemon=self.daemon)
            with RelayProcess(engine.place) as relay:
                training = Training(relay.address, STEPS, **self._environment(self.package))
                for cut in range(1, CUTS + 1):
                    training.reach(cut * STEPS // (CUTS + 1))
                    relay.command("cut")
                digest = self._weights(training.result())
                if relay.stats()["connections"] <= CUTS:
                    self.complaints.append("the connection was not cut")
            self.complaints += filter(None, [engine.stop()])
            return digest

    def checkpoint(self) -> str:
        """Trains half of the steps, then the rest with the other client from the checkpoint; returns the digest."""
        with tempfile.TemporaryDirectory() as folder:
            engine = Engine(Path(folder), daemon=self.daemon)
            options = ["--save", "state", "--every", str(STEPS // 2)]
            first = Training(engine.address, STEPS // 2, *options, **self._environment(self.package)).result()
            self.complaints += [first["reason"]] if "reason" in first else []
            training = Training(engine.address, STEPS, *options, **self._environment(self.other))
            digest = self._weights(training.result())
            if training.events[0].get("step") != STEPS // 2:
                self.complaints.append("the checkpoint was not loaded")
            self.complaints += filter(None, [engine.stop()])
            return digest

    def publish(self) -> str:
        """Publishes and opens a tensor; returns what the client printed."""
        with tempfile.TemporaryDirectory() as folder:
            engine = Engine(Path(folder), daemon=self.daemon)
            environment = {**os.environ, **self._environment(self.package), "TELETENSOR_ADDRESS": engine.address}
            done = subprocess.run([sys.executable, "-m", "tests.skew.publishing"], cwd=ROOT, env=environment,
                                  capture_output=True, text=True, timeout=120)  # fmt: skip
            self.complaints += filter(None, [engine.stop()])
        published, *after = done.stdout.splitlines() or [done.stderr[-1000:]]
        if after != ["499500.0"] or not (
            published == "True" or "does not have" in published or "has no attr" in published
        ):
            self.complaints.append(f"published tensors: {done.stdout}{done.stderr[-1000:]}")
        return published


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wheel", type=Path, help="a wheel of the commit; by default it is built")
    wheel = parser.parse_args().wheel
    name = wheel.stem if wheel else COMMIT[:8]
    old = unpack(wheel or build_wheel())
    new, daemon = BUILD / "python", BUILD / "bin/teletensord"
    old_daemon = engine_of(old)
    table = Table("client", "engine", "resumed", "checkpoint", "published", "")
    complaints = changes(current(SOURCE), current()) if SOURCE.exists() else []
    names = {new: "this tree", old: name, daemon: "this tree", old_daemon: name}
    for engine in daemon, old_daemon:
        digests = []
        for client, other in (new, old), (old, new):
            pair = Pair(client, other, engine)
            cells = [pair.resume(), pair.checkpoint(), pair.publish()]
            digests += cells[:2]
            complaints += [f"client {names[client]}, engine {names[engine]}: {each}" for each in pair.complaints]
            table.add_row(names[client], names[engine], *(cell[:12] for cell in cells[:2]), cells[2],
                          "failed" if pair.complaints else "")  # fmt: skip
        if len(set(digests)) != 1:
            complaints.append(f"engine {names[engine]}: the weights differ: {digests}")
    console = Console(width=max(Console().width, 140))
    console.print(table)
    for each in complaints:
        console.print(each, style="red", markup=False)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
