"""examples/data_parallel.py on one and two engines, for a few steps of small data."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from ...conftest import IN_PROCESS, ROOT, client_environment

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the ranks start private engines")
SCRIPT = ROOT / "examples/data_parallel.py"


def write_data(model: str, folder):
    """Writes random data in the format of the model's data set; returns its path."""
    generator = np.random.default_rng(0)
    if model == "gpt":
        path = folder / "text.txt"
        path.write_bytes(generator.integers(97, 110, 400).astype(np.uint8).tobytes())
        return path
    for name, shape in (("images-idx3", (24, 28, 28)), ("labels-idx1", (24,))):
        data = generator.integers(0, 256 if len(shape) > 1 else 10, shape).astype(np.uint8)
        header = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
        with gzip.open(folder / f"train-{name}-ubyte.gz", "wb") as file:
            file.write(header + data.tobytes())
    return folder


def run(command: list, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=client_environment(TELETENSOR_THREADS="1", **environment),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def options(model: str, folder) -> list:
    return [f"--model={model}", "--data", write_data(model, folder), "--batch=4", "--length=8", "--steps=3", "--epochs=2"]


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
    text = tmp_path / "text.txt"
    text.write_bytes(np.random.default_rng(0).integers(97, 110, 400).astype(np.uint8).tobytes())
    output = run([ROOT / "examples/one_process.py", "--steps=4", "--batch=2", "--data", text])
    rows = [line.split("│") for line in output.splitlines() if line.startswith("│")]
    losses = {int(row[1]): float(row[2]) for row in rows}
    assert losses[2] == pytest.approx(losses[1], rel=1e-3) and math.isfinite(losses[1])
