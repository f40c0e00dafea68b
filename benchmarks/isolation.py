"""The cost of a worker process: `python -m benchmarks.isolation` prints times and rates in an ordinary engine and in a worker
of an engine with --isolate=principal, and ratios.

Both engines run at the same time, and a client measures them in alternation, on unix sockets with shared memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tls import ROUNDS, ROWS, measure

ROOT = Path(__file__).resolve().parent.parent


class Engine:
    def __init__(self, folder: Path, *options: str):
        folder.mkdir()
        self.log, socket = folder / "log", folder / "engine.sock"
        command = [ROOT / "build/bin/teletensord", "--listen", f"unix:{socket}", "--token-file", folder / "token", *options]
        self.process = subprocess.Popen(command, stderr=self.log.open("w"))
        while "listening on" not in self.log.read_text():
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text())
            time.sleep(0.05)
        self.options = {"address": f"unix:{socket}", "token": (folder / "token").read_text().strip()}


def main() -> None:
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/python")}
    with tempfile.TemporaryDirectory() as folder:
        engines = [Engine(Path(folder, "ordinary")), Engine(Path(folder, "isolated"), "--isolate", "principal")]
        best: list[list[float]] = [[], []]
        try:
            for _ in track(range(ROUNDS), "measuring"):
                for engine, so_far in zip(engines, best):
                    done = subprocess.run(
                        [sys.executable, "-m", "benchmarks.isolation", json.dumps(engine.options)], env=environment, cwd=ROOT,
                        capture_output=True, text=True, check=True,
                    )  # fmt: skip
                    now = json.loads(done.stdout)
                    so_far[:] = [(max if more else min)(pair) for (_, _, more), pair in zip(ROWS, zip(so_far or now, now))]
        finally:
            for engine in engines:
                engine.process.terminate()
                engine.process.wait()
    table = Table(title=f"unix socket and shared memory, best of {ROUNDS} runs")
    for column in ("", "engine", "worker", "worker / engine"):
        table.add_column(column, justify="right" if column else "left")
    for (name, unit, _), engine, worker in zip(ROWS, *best):
        table.add_row(name, f"{engine * unit:,.1f}", f"{worker * unit:,.1f}", f"{worker / engine:.2f}")
    Console().print(table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    else:
        main()
