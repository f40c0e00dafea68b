"""Runs a test file with a package in processes of their own, and returns the outcome of each test."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..peer import environment

LIMIT = 60.0  # seconds per test
INTERNAL_ERROR = 3  # pytest's exit code
PLUGIN = "tests.conformance.unit_tests.plugin"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test: "passed", "failed" or "skipped", and why."""

    state: str
    message: str = ""


def run(file: Path, package: str, python: str, record: Path, every: int = 1, limit: float = LIMIT) -> dict[str, Outcome]:
    """The outcomes of one of `every` tests, by test. If the file cannot be imported, the only outcome is that of "".

    PyTorch's are read from the record of an earlier run of the same file.
    """
    head = {"file": hashlib.sha256(file.read_bytes()).hexdigest(), "every": every}
    lines = _read(record)
    if package == "torch" and lines and lines[0] == head and lines[-1] == {"finished": True}:
        return _outcomes(lines)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(head) + "\n")
    while _ended(_start(file, package, python, record, every, limit), record):
        pass
    return _outcomes(_read(record))


def _start(file: Path, package: str, python: str, record: Path, every: int, limit: float) -> int:
    """Runs the tests that are not in the record; returns the exit code."""
    command = [
        python, "-m", "pytest", str(file), "-q", "--noconftest", "-c", os.devnull, "--rootdir", str(file.parent), "--tb=short",
        "-p", "no:cacheprovider", "-p", PLUGIN, "--package", package, "--record", str(record), "--limit", str(limit),
        "--every", str(every),
    ]  # fmt: skip
    variables = {**environment(), "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu", "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}
    del variables["PYTHONWARNINGS"]  # tests check warnings
    with record.with_suffix(".log").open("a") as log, tempfile.TemporaryDirectory() as scratch:
        return subprocess.run(command, cwd=scratch, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode


def _ended(code: int, record: Path) -> bool:
    """Completes the record after a process; returns whether tests remain."""
    lines = _read(record)
    last = lines[-1]
    with record.open("a") as file:
        if "start" in last:
            file.write(json.dumps({"test": last["start"], "state": "failed", "message": f"ended the process ({code})"}) + "\n")
            return True
        if code == INTERNAL_ERROR and "test" in last:  # the limit expired between two tests
            return True
        if len(lines) == 1:
            file.write(json.dumps({"broken": f"pytest ended with code {code}: {record.with_suffix('.log').name}"}) + "\n")
        file.write(json.dumps({"finished": True}) + "\n")
    return False


def _read(record: Path) -> list[dict]:
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def _outcomes(lines: list[dict]) -> dict[str, Outcome]:
    broken = [line["broken"] for line in lines if "broken" in line]
    if broken:
        return {"": Outcome("failed", broken[0])}
    return {line["test"]: Outcome(line["state"], line["message"]) for line in lines if "test" in line}
