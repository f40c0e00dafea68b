"""`python -m benchmarks.run [--peers]`: compares teletensor with hardware limits and peers. Writes build/bench.json.

The C++ benchmarks measure teletensor and the floor alternately in one process. With --peers PyTorch is installed
into a separate environment (.venv-peers) and runs the same scripts, alternating with teletensor.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .peers import interpreter

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def build(*targets: str) -> None:
    """Builds C++ benchmarks, which the default build omits."""
    subprocess.run(["cmake", "--build", str(BUILD), "--target", *targets], check=True, stdout=subprocess.DEVNULL)


def cpp(name: str, *args: str) -> list[dict]:
    """Runs a C++ benchmark and returns its rows."""
    environment = {**os.environ, "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord")}
    for path in (BUILD / "benchmarks" / name, BUILD / "bin" / name):
        if path.exists():
            text = subprocess.run([str(path), "--json", *args], check=True, capture_output=True, text=True, env=environment).stdout
            return json.loads(text)
    raise FileNotFoundError(name)


def python(script: str, package: str, executable: str = sys.executable) -> dict[str, float]:
    """Runs a script of benchmarks/ once with `package` as its torch. Returns values by name."""
    environment = {**os.environ, "BENCH_TORCH": package, "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord")}
    if package == "teletensor":
        environment["PYTHONPATH"] = str(BUILD / "python")
    command = [executable, str(ROOT / "benchmarks" / script)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def alternate_with_peer(script: str, rounds: int, peer: str | None) -> list[dict]:
    """Returns medians of several runs that alternate with the peer's, so that both see the same machine load."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(python(script, "teletensor"))
        if peer:
            theirs.append(python(script, "torch", peer))
    rows = []
    for name in ours[0]:
        row = {"what": name, "ours": statistics.median(r[name] for r in ours), "unit": "us"}
        if theirs and name in theirs[0]:
            row["peer"] = statistics.median(r[name] for r in theirs)
        rows.append(row)
    return rows


def start_up() -> list[dict]:
    """Returns the times of import and of a first result with a private engine, and the idle engine's memory."""
    rows = python("start.py", "teletensor")
    units = {"idle engine, resident": "MB"}
    return [{"what": k, "ours": v, "unit": units.get(k, "ms")} for k, v in rows.items()]


def show(console: Console, title: str, rows: list[dict]) -> None:
    """Prints one table. A ratio above 1 means that teletensor is better than the floor or peer."""
    table = Table(title=title, title_justify="left")
    for column in ("what", "ours", "floor or peer", "ratio"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        reference = row.get("floor", row.get("peer", row.get("direct", row.get("floor_ms"))))
        mine = row.get("ours", row.get("gflops", row.get("ms")))
        unit = row.get("unit", "GFLOP/s" if "gflops" in row else "ms")
        more_is_better = row.get("more_is_better", "gflops" in row)
        ratio = None if not reference else (mine / reference if more_is_better else reference / mine)
        table.add_row(
            row["what"], f"{mine:,.4g} {unit}", "" if reference is None else f"{reference:,.4g}",
            "" if ratio is None else f"{ratio:.2f}",
        )
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="compare with PyTorch")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each Python script (default: 3)")
    args = parser.parse_args()
    console = Console()
    results: dict[str, list[dict]] = {}

    def report(title: str, rows: list[dict]) -> None:
        results[title] = rows
        show(console, title, rows)

    peer = interpreter() if args.peers else None
    with console.status("building the benchmarks"):
        build("client_bench", "matmul_bench", "reduce_bench")
    report("small operations, from Python", alternate_with_peer("small.py", args.rounds, peer))
    report("training steps, from Python", alternate_with_peer("training.py", args.rounds, peer))
    report("client and wire, compared with gRPC, memcpy and raw TCP", cpp("client_bench"))
    report("matrix products and convolutions, compared with oneDNN", cpp("matmul_bench"))
    report("reductions, compared with a read or a copy", cpp("reduce_bench"))
    report("start", start_up())
    (BUILD / "bench.json").write_text(json.dumps(results, indent=2))
    console.print("wrote build/bench.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
