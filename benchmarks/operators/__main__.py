"""`python -m benchmarks.operators [--peers]`: measures every operator at three sizes, alternating with PyTorch.

Without --peers the reference is the time to move the inputs and results through memory once. Prints the
distribution of ratios, the slowest operators and those not compared; writes build/bench-operators.json and .png.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.peers import interpreter

from . import report
from .cases import Case, all_cases

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LIMIT = 60  # maximum seconds for one operator in one package
SLOW = 1.2  # a case above this ratio is measured again, with --again
PAUSE = 0.02  # seconds between packages, because OpenMP's threads spin for a while after a loop
ITEM = {"float32": 4, "float64": 8, "bfloat16": 2, "int64": 8, "int32": 4}


class PackageProcess:
    """A process that measures one package."""

    def __init__(self, package: str, python: str, threads: int):
        environment = {**os.environ, "BENCH_TORCH": package, "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord")}
        environment |= {"OMP_NUM_THREADS": str(threads), "TELETENSOR_THREADS": str(threads)}
        environment["PYTHONPATH"] = f"{ROOT}:{BUILD / 'python'}" if package == "teletensor" else str(ROOT)
        self.command, self.environment = [python, "-m", "benchmarks.operators.measure"], environment
        self.process = self._start()

    def _start(self) -> subprocess.Popen:
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self.environment, cwd=ROOT,
        )  # fmt: skip

    def measure(self, case: Case, budget: float, count: int | None = None) -> dict:
        """Measures a case. `count` is the number of calls in flight; if None, the process chooses it."""
        time.sleep(PAUSE)
        try:
            self.process.stdin.write(json.dumps({**asdict(case), "budget": budget, "count": count}) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            ready, line = True, ""
        if line:
            return json.loads(line)
        self.process.kill()
        self.process.wait()
        self.process = self._start()
        return {"error": "the process ended" if ready else f"took longer than {LIMIT} s"}

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(case: Case, ours: PackageProcess, reference: Callable[[Case, int | None], dict], budget: float) -> dict:
    """Returns one row of the results."""
    mine = ours.measure(case, budget)
    other = reference(case, mine.get("count"))
    row = {"name": case.name, "family": case.family, "size": case.size, "dtype": case.dtype, "call": case.call}
    row["in_flight"] = mine.get("count")
    row |= {"ours": mine.get("us"), "reference": other.get("us")}
    row |= {"error": mine.get("error"), "error_reference": other.get("error")}
    row["ratio"] = row["ours"] / row["reference"] if row["ours"] and row["reference"] else None
    return row


def repeat(row: dict, case: Case, ours: PackageProcess, reference: Callable[[Case, int | None], dict], args: argparse.Namespace) -> None:
    """Measures a slow case again, alternating, and keeps the least times of both sides: other programs only add time."""
    for _ in range(args.again):
        if not row["ratio"] or row["ratio"] <= SLOW:
            return
        mine, other = ours.measure(case, args.budget, row["in_flight"]), reference(case, row["in_flight"])
        if not (mine.get("us") and other.get("us")):
            return
        row["ours"], row["reference"] = min(row["ours"], mine["us"]), min(row["reference"], other["us"])
        row["ratio"] = row["ours"] / row["reference"]


def bandwidth() -> float:
    """Returns the bytes per second of a copy in this process, counting reads and writes."""
    a = np.ones(1 << 25, np.float32)
    b, best = np.empty_like(a), math.inf
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(b, a)
        best = min(best, time.perf_counter() - start)
    return 2 * a.nbytes / best


def floor(case: Case, rate: float) -> float:
    """Returns the microseconds to read all inputs and to write as many bytes as the largest input has."""
    shapes = [v["size"] if isinstance(v, dict) else v for k, v in case.inputs.items() if re.search(rf"\b{k}\b", case.call)]
    elements = [math.prod(s) for s in shapes]
    return 1e6 * (sum(elements) + max(elements)) * ITEM[case.dtype] / rate


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.operators", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="compare with PyTorch")
    parser.add_argument("--budget", type=float, default=0.1, help="seconds per operator, size and package (default: 0.1)")
    parser.add_argument("--names", default="", help="regular expression to select cases, matched against 'name dtype size'")
    parser.add_argument("--again", type=int, default=0, help="measurements of each case above 1.2, for a machine in use (default: 0)")
    parser.add_argument("--worst", type=int, default=20, help="number of slowest operators to list (default: 20)")
    parser.add_argument("--out", type=Path, default=BUILD / "bench-operators", help="path of the output files, without .json and .png")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of both packages (default: all cores)")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    cases = [c for c in all_cases() if re.search(args.names, c.key)]
    if not cases:
        parser.error(f"no case matches --names {args.names!r}")
    ours = PackageProcess("teletensor", sys.executable, args.threads)
    peer = PackageProcess("torch", interpreter(), args.threads) if args.peers else None
    rate = 0.0 if args.peers else bandwidth()

    def reference(case: Case, count: int | None) -> dict:
        return peer.measure(case, args.budget, count) if peer else {"us": floor(case, rate)}

    results, started = [], time.monotonic()
    try:
        with console.status("") as status:
            for i, case in enumerate(cases):
                status.update(f"{i + 1} of {len(cases)}: {case.key}")
                results.append(compare(case, ours, reference, args.budget))
                repeat(results[-1], case, ours, reference, args)
    except KeyboardInterrupt:
        console.print("interrupted; showing the results so far")
    for side in filter(None, (ours, peer)):
        side.end()
    name = "PyTorch" if args.peers else "memory bandwidth"
    report.distribution(console, results, f"time, ours / {name}: number of operators per range")
    report.percentiles(console, results)
    report.highest_ratios(console, results, args.worst)
    report.not_compared(console, results)
    document = {"reference": name, "threads": args.threads, "cases": results}
    args.out.with_suffix(".json").write_text(json.dumps(document, indent=1))
    report.draw(results, name, args.out.with_suffix(".png"))
    console.print(f"{len(results)} cases in {(time.monotonic() - started) / 60:.1f} minutes; wrote {args.out}.json and .png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
