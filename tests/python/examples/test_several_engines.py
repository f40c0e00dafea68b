"""examples/data_parallel.py and one_process.py on one and two engines, for a few steps of small data."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from ...conftest import IN_PROCESS, ROOT, client_environment
from .data import write_images, write_text

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="the ranks start private engines")]
SCRIPT = ROOT / "examples/data_parallel.py"


def run(command: list, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=client_environment(TELETENSOR_THREADS="1", **environment),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def options(model: str, folder) -> list:
    data = write_text(folder) if model == "gpt" else write_images(folder)
    return [f"--model={model}", "--data", data, "--batch=4", "--length=8", "--steps=3", "--epochs=2"]


@pytest.mark.parametrize("model", ["fashion", "gpt"])
def test_losses_are_equal_for_every_number_of_engines(tmp_path, model):
    arguments, losses = options(model, tmp_path), {}
    for ranks in (1, 2):
        result = tmp_path / f"{ranks}.json"
        output = run(["-m", "teletensor.launch", "-n", ranks, SCRIPT, *arguments, "--result", result])
        # Rank 0 reports for all ranks.
        assert "step 6/6  loss" in output and {line[:4] for line in output.splitlines()} == {"[0] "}
        measured = json.loads(result.read_text())
        assert measured["engines"] == ranks and measured["step"] > 0 and measured["all_reduce"] > 0
        losses[ranks] = measured["losses"]
    assert len(losses[1]) == 2 and all(map(math.isfinite, losses[1]))
    np.testing.assert_allclose(losses[2], losses[1], rtol=1e-4)


def test_comparison_writes_a_table_and_a_plot(tmp_path):
    run([SCRIPT, *options("gpt", tmp_path), "--engines", 1, 2, "--out", tmp_path / "out"])
    rows = [line for line in (tmp_path / "out/data_parallel_gpt.md").read_text().splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[1:]] == ["| 1", "| 2"]
    assert (tmp_path / "out/data_parallel_gpt.png").stat().st_size > 0


def test_batch_that_cannot_be_divided(tmp_path):
    arguments = [*options("gpt", tmp_path), "--batch=3"]
    command = [sys.executable, "-m", "teletensor.launch", "-n", "2", str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, env=client_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "expected --batch to be a multiple of 2 ranks, got 3" in done.stderr


def test_one_process_trains_on_two_engines_like_on_one(tmp_path):
    output = run([ROOT / "examples/one_process.py", "--steps=4", "--batch=2", "--data", write_text(tmp_path)])
    rows = [line.split("│") for line in output.splitlines() if line.startswith("│")]
    losses = {int(row[1]): float(row[2]) for row in rows}
    assert losses[2] == pytest.approx(losses[1], rel=1e-3) and math.isfinite(losses[1])
