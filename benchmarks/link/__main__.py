"""`python -m benchmarks.link`: training over links with delay, compared with loopback TCP. Writes build/bench-link.json.

A relay (tests/relay) between the client and the engine delays each direction. Every link runs the same programs
(workloads.py) on a daemon of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.relay.process import RelayProcess

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


@dataclass
class Link:
    """A link between the client and the engine."""

    name: str
    round_trip: float = 0  # milliseconds
    rate: float = 0  # megabits per second; 0: unlimited
    upload_megabytes: int = 0


LINKS = [
    Link("loopback TCP"),
    Link("20 ms", round_trip=20),
    Link("100 ms", round_trip=100),
    Link("300 ms", round_trip=300),
    Link("100 ms, 1 Gbit/s", round_trip=100, rate=1000, upload_megabytes=256),
]


@contextlib.contextmanager
def daemon() -> Iterator[str]:
    """Runs an engine; yields the path of its socket."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "engine.sock"
        with open(Path(folder) / "log", "w") as log:
            process = subprocess.Popen(
                [str(BUILD / "bin/teletensord"), "--listen", f"unix:{path}", "--no-auth"], stdout=log, stderr=log
            )
        try:
            while not path.exists():
                if process.poll() is not None:
                    raise SystemExit(f"benchmarks.link: the engine ended:\n{(Path(folder) / 'log').read_text()}")
                time.sleep(0.01)
            yield str(path)
        finally:
            process.terminate()
            process.wait()


def measure(link: Link, seconds: float) -> dict[str, float]:
    """Microseconds per step of each workload over `link`."""
    with daemon() as engine, RelayProcess(f"unix:{engine}", delay=link.round_trip / 2, rate=link.rate) as relay:
        command = [sys.executable, "-m", "benchmarks.link.workloads", relay.address, "--seconds", str(seconds)]
        command += ["--upload-megabytes", str(link.upload_megabytes)]
        # Without this the bytes would not pass the relay, because client and engine are on one host.
        environment = {
            **os.environ,
            "TELETENSOR_SHARED_MEMORY": "0",
            "PYTHONPATH": f"{BUILD / 'python'}{os.pathsep}{ROOT}",
        }
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"benchmarks.link: {link.name} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> None:
    """Measures all links and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3, help="per workload and link (default: 3)")
    parser.add_argument("--links", default="", help="run only links whose name contains this, and loopback TCP")
    args = parser.parse_args()
    console = Console()
    links = [LINKS[0], *(link for link in LINKS[1:] if args.links in link.name)]
    results = {}
    with console.status("measuring") as status:
        for link in links:
            status.update(f"measuring over {link.name}")
            results[link.name] = measure(link, args.seconds)
    base = results[LINKS[0].name]
    table = Table(title="microseconds per step, and relative to loopback TCP")
    table.add_column("link")
    for what in base:
        table.add_column(what, justify="right")
    for name, row in results.items():
        table.add_row(
            name, *(f"{row[what]:,.0f}" + ("" if row is base else f" ({row[what] / base[what]:.2f})") for what in base)
        )
    console.print(table)
    for link in links:
        if link.upload_megabytes:
            seconds = results[link.name]["large upload"] / 1e6
            share = link.upload_megabytes * 8.388608 / seconds / link.rate
            console.print(
                f"{link.upload_megabytes} MiB over {link.name}: {seconds:.1f} s, {share:.2f} of the link's rate"
            )
    (BUILD / "bench-link.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
