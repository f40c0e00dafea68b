"""`python -m benchmarks.first_calls`: the first call of a compiled model in a new process, with a cold daemon, with one that
has run the same model for an earlier process, and after a restart of the daemon; then the second call.

Times until a number of the result was read, in milliseconds; medians of several processes. A first call contains the
capture in Python, or the search for a stored one, guards, the definition of the Program, its passes unless the daemon has
them, and one run. The first process of a round has an empty folder of stored captures, in which the others find its capture;
with --without, captures are not stored.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.engine_pair import Engine
from benchmarks.gpt import make_gpt
from benchmarks.vision import resnet18

MODELS = ("GPT of 4 layers, 1 x 64", "ResNet-18, batch 1")
PHASES = ("cold daemon", "second process", "after a restart")


def model_of(torch, name: str):
    """The model and its argument."""
    if name == MODELS[0]:
        return make_gpt(torch, 65).eval(), torch.randint(0, 65, (1, 64))
    return resnet18(torch).eval(), torch.randn(1, 3, 224, 224)


def measure(name: str) -> dict[str, float]:
    """Times of this process in milliseconds."""
    import teletensor as torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.no_grad():
        model, x = model_of(torch, name)
        single = model(x).flatten()[0].item()  # the parameters exist, and the kernels have run
        start = time.perf_counter()
        compiled = torch.compile(model)
        prepared = time.perf_counter() - start
        times = []
        for _ in range(3):
            start = time.perf_counter()
            result = compiled(x)
            issued = time.perf_counter()
            value = result.flatten()[0].item()
            times.append((time.perf_counter() - start, issued - start))
        assert abs(value - single) <= 1e-3 * abs(single) + 1e-4, name
    return {
        "compile": 1e3 * prepared,
        "first": 1e3 * times[0][0], "issued": 1e3 * times[0][1], "second": 1e3 * times[1][0], "third": 1e3 * times[2][0],
    }  # fmt: skip


def in_process(name: str, engine: Engine, folder: str) -> dict[str, float]:
    """Times of a new client process, which stores captures in a folder; empty: nowhere."""
    environment = {**os.environ, "TELETENSOR_ADDRESS": engine.address, "TELETENSOR_TOKEN": engine.token.read_text().strip()}
    environment |= {"XDG_CACHE_HOME": folder, "TELETENSOR_STORED_CAPTURES": "1"} if folder else {"TELETENSOR_STORED_CAPTURES": "0"}
    command = [sys.executable, "-m", "benchmarks.first_calls", "--model", name]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", action="store_true", help="do not store captures")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        print(json.dumps(measure(options.model)))
        return
    table = Table(title="Milliseconds until the result was read; the part of the caller's thread in parentheses")
    for column in ("model", "process", "torch.compile()", "first call", "second call", "third call"):
        table.add_column(column, justify="left" if column in ("model", "process") else "right")
    for name in MODELS:
        rows: dict[str, list[dict[str, float]]] = {phase: [] for phase in PHASES}
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                captures = "" if options.without else folder
                engines = [Engine(Path(folder, "0"), f"unix:{folder}/0.sock")]
                rows[PHASES[0]].append(in_process(name, engines[0], captures))
                rows[PHASES[1]].append(in_process(name, engines[0], captures))
                engines[0].stop()
                restarted = Engine(Path(folder, "1"), f"unix:{folder}/1.sock")
                rows[PHASES[2]].append(in_process(name, restarted, captures))
                restarted.stop()
        for phase, times in rows.items():
            middle = {key: statistics.median(t[key] for t in times) for key in times[0]}
            table.add_row(name, phase, f"{middle['compile']:.1f}",
                          f"{middle['first']:.1f} ({middle['issued']:.1f})", f"{middle['second']:.1f}",
                          f"{middle['third']:.1f}")  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    main()
