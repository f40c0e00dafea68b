"""`python -m benchmarks.link`: training over links with delay, compared with loopback TCP. Writes build/bench-link.json.

A relay (tests/relay) between the client and the engine delays each direction and limits its rate. Every link runs the
same programs (workloads.py) on a daemon of its own, alternately over the link and over loopback.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


@dataclass
class Link:
    """A link between the client and the engine."""

    name: str
    round_trip: float = 0  # milliseconds
    rate: float = 0  # megabits per second; 0: unlimited
    upload_megabytes: int = 0  # of the upload during which instructions are measured


LINKS = [
    Link("loopback TCP"),
    Link("20 ms", round_trip=20),
    Link("100 ms", round_trip=100),
    Link("300 ms", round_trip=300),
    Link("20 ms, 50 Mbit/s", round_trip=20, rate=50),
    Link("20 ms, 1 Gbit/s", round_trip=20, rate=1000, upload_megabytes=256),
    Link("100 ms, 1 Gbit/s", round_trip=100, rate=1000, upload_megabytes=256),
]
STEPS = ("MLP step", "MLP step with upload", "tiny MLP step", "tiny MLP step, loss logged")

Row = dict[str, float]  # results by name
Results = dict[str, tuple[Row, Row]]  # by link: over it, and over loopback at the same time


@dataclass
class Target:
    """A figure and its largest accepted value."""

    name: str
    link: str
    figure: Callable[[Row, Row], float]
    limit: float


def relative(name: str) -> Callable[[Row, Row], float]:
    """The ratio of a result to loopback's."""
    return lambda row, base: row[name] / base[name]


TARGETS = [
    Target("MLP step / loopback", "100 ms", relative("MLP step"), 1.1),
    Target("MLP step with upload / loopback", "100 ms", relative("MLP step with upload"), 1.1),
    Target("tiny MLP step / loopback", "100 ms", relative("tiny MLP step"), 1.3),
    *(
        Target(
            "tiny MLP step, loss logged / not logged",
            link,
            lambda row, _: row["tiny MLP step, loss logged"] / row["tiny MLP step"],
            1.1,
        )
        for link in ("loopback TCP", "100 ms")
    ),
    Target("MLP step / loopback", "300 ms", relative("MLP step"), 1.1),
    Target("MLP step / loopback", "20 ms, 50 Mbit/s", relative("MLP step"), 1.1),
    *(
        Target(
            f"instruction during upload / idle, {which}",
            "20 ms, 1 Gbit/s",
            lambda row, _, which=which: row[f"instruction during upload, {which}"] / row[f"instruction, {which}"],
            2,
        )
        for which in ("p50", "p99")
    ),
    *(
        Target(
            "256 MiB, time / that of the rate",
            link.name,
            lambda row, _, link=link: row["seconds of upload"] * link.rate / (link.upload_megabytes * 8.388608),
            1.1,
        )
        for link in LINKS
        if link.upload_megabytes
    ),
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


def measure(link: Link, seconds: float) -> tuple[Row, Row]:
    """The results of the workloads over `link`, and over loopback."""
    with daemon() as engine:
        command = [sys.executable, "-m", "benchmarks.link.workloads", f"unix:{engine}", "--seconds", str(seconds)]
        command += ["--round-trip", str(link.round_trip), "--rate", str(link.rate)]
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


def table_of_steps(results: Results) -> Table:
    """Microseconds per step, and relative to loopback TCP at the same time."""
    table = Table(title="microseconds per step, and relative to loopback TCP")
    table.add_column("link")
    for name in STEPS:
        table.add_column(name, justify="right")
    for link, (row, base) in results.items():
        alone = row == base
        table.add_row(
            link, *(f"{row[name]:,.0f}" + ("" if alone else f" ({row[name] / base[name]:.2f})") for name in STEPS)
        )
    return table


def table_of_instructions(results: Results) -> Table:
    """Latencies in microseconds, and bytes on the wire."""
    table = Table(title="an instruction and its value: microseconds; tiny MLP: bytes per instruction")
    for column in ("link", "p50", "p99", "p50 during upload", "p99 during upload", "upload, s", "sent", "received"):
        table.add_column(column, justify="left" if column == "link" else "right")
    for link, (row, _) in results.items():
        times = [f"instruction{during}, {which}" for during in ("", " during upload") for which in ("p50", "p99")]
        cells = [f"{row[name]:,.0f}" if name in row else "" for name in times]
        cells.append(f"{row['seconds of upload']:.2f}" if "seconds of upload" in row else "")
        cells += [f"{row[f'bytes {way} per instruction']:.1f}" for way in ("sent", "received")]
        table.add_row(link, *cells)
    return table


def table_of_targets(results: Results) -> Table:
    """The figures that have a target."""
    table = Table(title="targets")
    for column in ("link", "figure", "value", "target"):
        table.add_column(column, justify="right" if column in ("value", "target") else "left")
    for target in TARGETS:
        if target.link not in results:
            continue
        value = target.figure(*results[target.link])
        style = "green" if value <= target.limit else "red"
        table.add_row(target.link, target.name, f"[{style}]{value:.2f}[/]", f"{target.limit:.1f}")
    return table


def main() -> None:
    """Measures all links and prints tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3, help="per workload and link (default: 3)")
    parser.add_argument("--links", default="", help="run only links whose name contains this, and loopback TCP")
    args = parser.parse_args()
    console = Console()
    links = [LINKS[0], *(link for link in LINKS[1:] if args.links in link.name)]
    results: Results = {}
    with console.status("measuring") as status:
        for link in links:
            status.update(f"measuring over {link.name}")
            row, base = measure(link, args.seconds)
            results[link.name] = row, base
    for table in (table_of_steps, table_of_instructions, table_of_targets):
        console.print(table(results))
    (BUILD / "bench-link.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
