"""Compares two ways of running an engine: times of operations and rates of bulk bytes, for benchmarks.tls and
benchmarks.isolation. Run as a program with the options of connect() in JSON, it is a client that measures one engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS, OPERATIONS, READS, BULK_BYTES = 7, 20_000, 300, 256 << 20
# Name, factor to the unit, whether more is better.
ROWS = (
    ("issue of an 8x8 add, ns", 1e9, False),
    ("item() of a computed value, us", 1e6, False),
    ("upload of 256 MiB, MB/s", 1e-6, True),
    ("download of 256 MiB, MB/s", 1e-6, True),
)


class Engine:
    """A daemon that listens on `address`; waits until it does."""

    def __init__(self, folder: Path, address: str, *options: str):
        folder.mkdir()
        self.address, self.token, self.log = address, folder / "token", folder / "log"
        command = [ROOT / "build/bin/teletensord", "--listen", address, "--token-file", self.token, *options]
        self.process = subprocess.Popen(command, stderr=self.log.open("w"))
        while "listening on" not in self.log.read_text():
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text())
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the process."""
        self.process.terminate()
        self.process.wait()


def measure(options: dict) -> list[float]:
    """Seconds per operation and per read; bytes per second. Runs in a client process."""
    import numpy as np

    import teletensor as torch

    torch.connect(**options, compression=None)
    a, b = torch.ones(8, 8), torch.ones(8, 8)
    results = []
    a.sum().item()
    start = time.perf_counter()
    for _ in range(OPERATIONS):
        a + b
    results.append((time.perf_counter() - start) / OPERATIONS)
    torch.synchronize()
    values = [(a + i).sum() for i in range(READS)]
    torch.synchronize()
    start = time.perf_counter()
    for value in values:
        value.item()
    results.append((time.perf_counter() - start) / READS)
    data = np.ones(BULK_BYTES // 4, np.float32)
    start = time.perf_counter()
    x = torch.from_numpy(data).clone()
    torch.synchronize()
    results.append(BULK_BYTES / (time.perf_counter() - start))
    start = time.perf_counter()
    x.numpy()
    results.append(BULK_BYTES / (time.perf_counter() - start))
    return results


def compare(title: str, names: tuple[str, str], start: Callable[[Path], tuple], digits: int, **environment: str) -> None:
    """Prints a table. ``start(folder)`` returns two pairs of an Engine and the options of connect(); both engines run at the
    same time, and a new client measures them in turn."""
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    variables = {**os.environ, "PYTHONPATH": str(ROOT / "build/python"), **environment}
    best: list[list[float]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        variables["TELETENSOR_KNOWN_ENGINES"] = f"{folder}/known_engines"
        pairs = start(Path(folder))
        try:
            for _ in track(range(ROUNDS), "measuring"):
                for (_, options), so_far in zip(pairs, best):
                    done = subprocess.run(
                        [sys.executable, "-m", "benchmarks.engine_pair", json.dumps(options)], env=variables, cwd=ROOT,
                        stdout=subprocess.PIPE, text=True, check=True,
                    )  # fmt: skip
                    now = json.loads(done.stdout)
                    so_far[:] = [(max if more else min)(pair) for (_, _, more), pair in zip(ROWS, zip(so_far or now, now))]
        finally:
            for engine, _ in pairs:
                engine.stop()
    table = Table(title=f"{title}, best of {ROUNDS} runs")
    for column in ("", *names, f"{names[1]} / {names[0]}"):
        table.add_column(column, justify="right" if column else "left")
    for (name, unit, _), first, second in zip(ROWS, *best):
        table.add_row(name, f"{first * unit:,.{digits}f}", f"{second * unit:,.{digits}f}", f"{second / first:.2f}")
    Console().print(table)


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
