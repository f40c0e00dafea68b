"""Runs a program with one of the packages in a folder of its own, and returns its losses."""

from __future__ import annotations

import array
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ..peer import BUILD, ROOT
from .programs import NANOGPT, Program

SITE = Path(__file__).parent / "site"
LIMIT = 900  # seconds
_PRINTED = re.compile(r"loss[^0-9-]*(-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", re.IGNORECASE)


@dataclass
class Outcome:
    """The losses of each process at its backward passes, the printed ones in the order of their lines' texts, and the time
    per loss after the first. `error` is "" if the program succeeded.
    """

    losses: list[list[float]] = field(default_factory=list)
    printed: list[float] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


def _environment(package: str, records: Path, ranks: int, packages: str) -> dict[str, str]:
    path = [str(SITE), *([packages] if packages else [])]
    if package == "teletensor":
        path = [str(SITE), str(BUILD / "python"), str(ROOT / "python/teletensor/_torch_path"), *path[1:]]
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("TELETENSOR_", "PET_"))}, "PYTHONPATH": os.pathsep.join(path),
        "EXAMPLE_RECORDS": str(records), "EXAMPLE_RANKS": str(ranks or 2), "OMP_NUM_THREADS": "1", "TELETENSOR_THREADS": "1",
        "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord"), "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1",
        "HYDRA_FULL_ERROR": "1",
    }  # fmt: skip


def _copy(program: Program, checkouts: dict[str, Path], folder: Path) -> None:
    """Copies the program, with its changes."""
    source = checkouts[NANOGPT] if program.folder == NANOGPT else checkouts["examples"] / program.folder
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git"))
    script = folder / program.script
    text = script.read_text()
    for before, after in program.changes:
        if text.count(before) != 1:
            raise ValueError(f"{program.name}: expected {before!r} once in {program.script}, found {text.count(before)} times")
        text = text.replace(before, after)
    script.write_text(text)
    if program.folder == NANOGPT:  # instead of its preparation, which downloads a text
        tokens = array.array("H", list((folder / "model.py").read_bytes()))
        (folder / "data/text").mkdir()
        for name in ("train.bin", "val.bin"):
            (folder / "data/text" / name).write_bytes(tokens.tobytes())


def run(program: Program, package: str, python: str, checkouts: dict[str, Path], packages: str, log: Path) -> Outcome:
    """Runs a program with "teletensor" or "torch". `packages`: a folder of packages that programs need besides."""
    with tempfile.TemporaryDirectory(prefix="examples-", ignore_cleanup_errors=True) as temporary:
        folder, records = Path(temporary, "program"), Path(temporary, "records")
        records.mkdir()
        _copy(program, checkouts, folder)
        interpreter = sys.executable if package == "teletensor" else python
        command = [interpreter]
        if program.ranks:
            command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={program.ranks}", "--virtual-local-rank"]
        command += [program.script, *program.arguments]
        environment = _environment(package, records, program.ranks, packages)
        outcome = Outcome()
        with log.open("w") as file:
            for _ in range(program.runs):
                outcome.error = outcome.error or _run_once(command, folder, environment, file, records, program.losses)
        _read(records, log, program.losses, outcome)
    if not outcome.error and not outcome.losses:
        outcome.error = "no loss was recorded"
    return outcome


def _run_once(command, folder: Path, environment, log, records: Path, losses: int) -> str:
    """Returns the error, or ""."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    end = time.monotonic() + LIMIT
    error = ""
    while process.poll() is None:
        if losses and sum(len(path.read_text().splitlines()) for path in records.iterdir()) >= losses:
            break
        if time.monotonic() > end:
            error = f"still running after {LIMIT} s"
            break
        time.sleep(0.1)
    else:
        error = f"exit code {process.returncode}" if process.returncode else ""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    return error


def _read(records: Path, log: Path, losses: int, outcome: Outcome) -> None:
    for path in records.iterdir():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines = lines[:losses] if losses else lines
        outcome.losses.append([loss for loss, _ in lines])
        if len(lines) > 1:
            outcome.seconds = max(outcome.seconds, (lines[-1][1] - lines[0][1]) / (len(lines) - 1))
    outcome.losses.sort(key=lambda sequence: (-len(sequence), sequence))
    # The launchers precede lines by the rank in different ways. The order of different ranks' lines is not fixed.
    lines = sorted(line[max(0, line.lower().find("loss") - 30) :] for line in log.read_text().splitlines() if "loss" in line.lower())
    if not losses:  # otherwise the end of the output depends on when the program was ended
        outcome.printed = sorted(float(number) for line in lines for number in _PRINTED.findall(line))
