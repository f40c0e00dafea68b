"""The cost of TLS: `python -m benchmarks.tls` prints times and rates over loopback TCP, with and without it, and ratios.

Both engines run at the same time, and each client measures them in alternation, without shared memory.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS, OPERATIONS, READS, BULK_BYTES = 7, 20_000, 300, 256 << 20
ROWS = (
    ("issue of an 8x8 add, ns", 1e9, False),
    ("item() of a computed value, us", 1e6, False),
    ("upload of 256 MiB, MB/s", 1e-6, True),
    ("download of 256 MiB, MB/s", 1e-6, True),
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Engine:
    def __init__(self, folder: Path, *options: str):
        folder.mkdir()
        place = f"127.0.0.1:{free_port()}"
        self.log = folder / "log"
        command = [ROOT / "build/bin/teletensord", "--listen", place, "--no-auth", "--token-file", folder / "token", *options]
        self.process = subprocess.Popen(command, stderr=self.log.open("w"))
        while "listening on" not in self.log.read_text():
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text())
            time.sleep(0.05)
        found = re.search(r"sha256:[0-9a-f]{64}", self.log.read_text())
        self.options = {"address": f"teletensors://{place}", "fingerprint": found[0]} if found else {"address": place}


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


def main() -> None:
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/python"), "TELETENSOR_SHARED_MEMORY": "0"}
    with tempfile.TemporaryDirectory() as folder:
        environment["TELETENSOR_KNOWN_ENGINES"] = f"{folder}/known_engines"
        engines = [Engine(Path(folder, "plain")), Engine(Path(folder, "tls"), "--tls-self-signed")]
        best: list[list[float]] = [[], []]
        try:
            for _ in track(range(ROUNDS), "measuring"):
                for engine, so_far in zip(engines, best):
                    done = subprocess.run(
                        [sys.executable, "-m", "benchmarks.tls", json.dumps(engine.options)], env=environment, cwd=ROOT,
                        capture_output=True, text=True, check=True,
                    )  # fmt: skip
                    now = json.loads(done.stdout)
                    so_far[:] = [(max if more else min)(pair) for (_, _, more), pair in zip(ROWS, zip(so_far or now, now))]
        finally:
            for engine in engines:
                engine.process.terminate()
                engine.process.wait()
    table = Table(title=f"loopback TCP, best of {ROUNDS} runs")
    for column in ("", "plain", "TLS", "TLS / plain"):
        table.add_column(column, justify="right" if column else "left")
    for (name, unit, _), plain, tls in zip(ROWS, *best):
        table.add_row(name, f"{plain * unit:,.0f}", f"{tls * unit:,.0f}", f"{tls / plain:.2f}")
    Console().print(table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    else:
        main()
