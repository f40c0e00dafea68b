"""The record of compile times, and the check that no file exceeds the limit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "deploy"))
import check_compile_times  # noqa: E402 - a script


def test_records_each_compilation(tmp_path):
    record = tmp_path / "compile_times.txt"
    command = [str(ROOT / "deploy/record_compile_time.sh"), "sh", "-c", "echo out; echo err >&2; exit 3", "-o", "a/b.o"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TT_COMPILE_TIMES": str(record)})
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    (tmp_path / "a").mkdir()
    assert check_compile_times.read_times(tmp_path) == {}  # the compilation wrote no file
    (tmp_path / "a/b.o").touch()
    (name, seconds), = check_compile_times.read_times(tmp_path).items()  # fmt: skip
    assert name == "a/b.o" and 0 <= seconds < 5


@pytest.mark.parametrize(("speed", "status"), [(1.0, 0), (0.5, 1), (2.0, 0)])
def test_limit_is_relative_to_the_machine(tmp_path, monkeypatch, capsys, speed, status):
    (tmp_path / "compile_times.txt").write_text("1.5+0.5 fast.o\n50.0+1.0 repaired.o\n24.0+1.0 slow.o\n2.0+1.0 repaired.o\n")
    for name in ("fast.o", "repaired.o", "slow.o"):
        (tmp_path / name).touch()
    monkeypatch.setattr(check_compile_times, "calibrate", lambda: speed * check_compile_times.REFERENCE_S)
    monkeypatch.setattr(sys, "argv", ["check_compile_times.py", str(tmp_path)])
    assert check_compile_times.main() == status
    printed = capsys.readouterr().out
    assert ("slow.o took 25.0 s" in printed) == (speed < 2) and "repaired.o" not in printed and "3 recorded files" in printed
