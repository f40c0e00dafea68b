"""`python -m benchmarks.decompositions`: Fourier transforms beside SciPy's pocketfft, and matrix decompositions beside
SciPy's LAPACK (OpenBLAS), with one thread per side and with two.

Each number of threads has a process that measures both sides alternately and starts its own engine. Prints the best
times and their ratio; writes build/bench-decompositions.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PAUSE = 0.01  # seconds between the sides, because the threads of a library spin for a while after a loop
LENGTHS = {
    2**10: "2^10", 2**14: "2^14", 2**16: "2^16", 2**18: "2^18", 2**20: "2^20", 2**22: "2^22",
    10**6: "10^6", 3**12: "3^12", 65_537: "65,537, prime", 1_000_003: "1,000,003, prime",
}  # fmt: skip
LINES = 64  # of the shortest lengths
ORDERS = (64, 256, 512, 1024)
DECOMPOSITIONS = ("lu_factor", "qr", "cholesky", "eigh", "svd")


@dataclass(frozen=True)
class Case:
    """`call` is a function of torch.fft, or of torch.linalg, and of SciPy's module of that name."""

    call: str
    size: int
    dtype: str

    @property
    def key(self) -> str:
        return f"{self.call} {self.label} {self.dtype}"

    @property
    def label(self) -> str:
        return f"{self.size} x {self.size}" if self.call in DECOMPOSITIONS else LENGTHS[self.size]


def all_cases() -> list[Case]:
    cases = []
    for dtype in ("float32", "float64"):
        cases += [Case(call, n, dtype) for call in ("fft", "rfft", "irfft") for n in LENGTHS]
        cases += [Case(call, n, dtype) for call in DECOMPOSITIONS for n in ORDERS]
    return cases


def values(case: Case) -> np.ndarray:
    """Returns the operand of both sides."""
    rng = np.random.default_rng(case.size)
    if case.call in DECOMPOSITIONS:
        a = rng.standard_normal((case.size, case.size))
        if case.call == "cholesky":
            a = a @ a.T + case.size * np.eye(case.size)
        return (a + a.T if case.call == "eigh" else a).astype(case.dtype)
    lines = LINES if case.size < 2**16 else 1
    x = rng.standard_normal((lines, case.size))
    if case.call == "rfft":
        return x.astype(case.dtype)
    z = x + 1j * rng.standard_normal(x.shape)
    return (z[:, : case.size // 2 + 1] if case.call == "irfft" else z).astype("complex64" if case.dtype == "float32" else "complex128")


def sides(case: Case, threads: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Returns the calls to measure: ours, which waits for the result, and SciPy's."""
    import scipy.fft
    import scipy.linalg

    import teletensor as torch

    a = values(case)
    t = torch.from_numpy(a)
    if case.call not in DECOMPOSITIONS:
        arguments = {"n": case.size} if case.call == "irfft" else {}
        mine, peer = getattr(torch.fft, case.call), getattr(scipy.fft, case.call)
        return lambda: (mine(t, **arguments), torch.synchronize()), lambda: peer(a, workers=threads, **arguments)
    peers = {
        "lu_factor": lambda: scipy.linalg.lu_factor(a, check_finite=False),
        "qr": lambda: scipy.linalg.qr(a, mode="economic", check_finite=False),
        "cholesky": lambda: scipy.linalg.cholesky(a, lower=True, check_finite=False),
        "eigh": lambda: scipy.linalg.eigh(a, check_finite=False),
        "svd": lambda: scipy.linalg.svd(a, full_matrices=False, check_finite=False),
    }
    arguments = {"full_matrices": False} if case.call == "svd" else {}
    mine = getattr(torch.linalg, case.call)
    return lambda: (mine(t, **arguments), torch.synchronize()), peers[case.call]


def best(calls: tuple[Callable[[], object], ...], budget: float) -> list[float]:
    """Returns the shortest time of each call in milliseconds, of rounds that take `budget` seconds, at least three."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end, rounds = time.perf_counter() + budget, 0
    while rounds < 3 or (time.perf_counter() < end and rounds < 200):
        for call, seen in zip(calls, times):
            time.sleep(PAUSE)
            start = time.perf_counter()
            call()
            seen.append(1e3 * (time.perf_counter() - start))
        rounds += 1
    return [min(seen) for seen in times]


def measure(names: str, threads: int, budget: float) -> None:
    """Prints a line of JSON per case."""
    for case in all_cases():
        if re.search(names, case.key):
            ours, scipy = best(sides(case, threads), budget)
            print(json.dumps({**asdict(case), "threads": threads, "ours_ms": ours, "scipy_ms": scipy}), flush=True)


def rows(names: str, threads: int, budget: float) -> list[dict]:
    """Measures in a process in which every library has `threads` threads."""
    count = str(threads)
    environment = {k: v for k, v in os.environ.items() if k != "TELETENSOR_ADDRESS"}
    environment |= {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "TELETENSOR_THREADS": count}
    environment |= {"PYTHONPATH": f"{ROOT}:{BUILD / 'python'}", "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord")}
    command = [sys.executable, "-m", "benchmarks.decompositions", "--names", names, "--budget", str(budget), "--measure", count]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def report(console: Console, results: list[dict], counts: list[int]) -> None:
    """Prints a row per case, and the geometric mean of the ratios per function."""
    table = Table(title="milliseconds: ours, SciPy, ratio", title_justify="left")
    for column in ("function", "size", "dtype", *(f"{n} thread{'s' * (n > 1)}" for n in counts)):
        table.add_column(column, justify="left" if column in ("function", "size", "dtype") else "right")
    ratios: dict[tuple[str, int], list[float]] = {}
    for case in all_cases():
        cells = []
        for n in counts:
            for r in results:
                if r["threads"] == n and Case(r["call"], r["size"], r["dtype"]) == case:
                    ratio = r["ours_ms"] / r["scipy_ms"]
                    ratios.setdefault((case.call, n), []).append(ratio)
                    cells.append(f"{r['ours_ms']:.3g}, {r['scipy_ms']:.3g}, {ratio:.2f}")
        if cells:
            table.add_row(case.call, case.label, case.dtype, *cells)
    console.print(table)
    for (call, n), seen in ratios.items():
        mean = math.exp(sum(map(math.log, seen)) / len(seen))
        console.print(f"{call}, {n} thread{'s' * (n > 1)}: geometric mean {mean:.2f} of {len(seen)}", markup=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.decompositions", description=__doc__)
    parser.add_argument("--names", default="", help="regular expression to select cases, matched against 'function size dtype'")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per case and number of threads (default: 0.5)")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not any(re.search(args.names, case.key) for case in all_cases()):
        parser.error(f"no case matches --names {args.names!r}")
    if args.measure:
        measure(args.names, args.measure, args.budget)
        return 0
    results = [row for n in args.threads for row in rows(args.names, n, args.budget)]
    report(Console(width=None if sys.stdout.isatty() else 160), results, args.threads)
    (BUILD / "bench-decompositions.json").write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
