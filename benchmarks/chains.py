"""`python -m benchmarks.chains`: chains of 5 to 50 pointwise operators as Programs, with and without a sum at the end, beside
one loop in C++, compiled with -Ofast for this machine, and beside `torch.compile` and eager PyTorch (--peers).

A time is that of one call, of 16 calls (2 of the largest) after which a number of the last result is read; the median of
several. With
TELETENSOR_COMPILE=0 in the environment the engine makes no machine code and runs the chain's steps one by one in blocks.
The private engine of the measurement compiles no repeated calls (TELETENSOR_WINDOWS=0), because "one by one" are repeated
calls; an engine at TELETENSOR_ADDRESS should be started with that variable.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import peers

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
LENGTHS = (5, 20, 50)


def calls_of(size: int) -> int:
    """The number of calls until a result is read."""
    return 2 if size > 1_000_000 else 16


# The operators of a chain in turn: as a function of the package, and in C++.
STEPS = (
    ("x * a", lambda torch, x, a: x * a),
    ("x + a", lambda torch, x, a: x + a),
    ("x > 0 ? x : 0.f", lambda torch, x, a: torch.relu(x)),
    ("x - 0.25f", lambda torch, x, a: x - 0.25),
    ("x * 0.5f", lambda torch, x, a: x * 0.5),
)


def cases() -> list[tuple[str, int, int, bool]]:
    """(name, length, elements, whether a sum follows)."""
    return [(f"{length} operators{' and a sum' if reduces else ''} of {size:,}", length, size, reduces)
            for length in LENGTHS for reduces in (False, True) for size in SIZES]  # fmt: skip


def chain(torch, length: int, reduces: bool) -> Callable:
    """The function of a case, of two tensors."""

    def run(x, a):
        for i in range(length):
            x = STEPS[i % len(STEPS)][1](torch, x, a)
        return x.sum() if reduces else x

    return run


def median(run: Callable[[], object], calls: int, seconds: float = 0.4) -> float:
    """The median time of `run` per call, in microseconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) / calls)
    return sorted(times)[len(times) // 2] * 1e6


def repeated(f: Callable, *args) -> Callable[[], float]:
    """Several calls of `f`, the last of which returns a number of its result."""

    def run() -> float:
        for _ in range(calls_of(len(args[0]))):
            result = f(*args)
        return result.flatten()[0].item()

    return run


def measure(package: str) -> dict[str, dict[str, float]]:
    """Times of all cases in this process."""
    os.environ["TELETENSOR_WINDOWS"] = "0"  # of the private engine
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    rows: dict[str, dict[str, float]] = {}
    for name, length, size, reduces in cases():
        x, a = torch.rand(size), torch.rand(size)
        f = chain(torch, length, reduces)
        torch.compiler.reset()
        compiled = torch.compile(f, dynamic=False) if package == "torch" else torch.compiler.trace(f, x, a)
        want, got = f(x, a).flatten()[0].item(), compiled(x, a).flatten()[0].item()
        assert math.isclose(want, got, rel_tol=1e-4, abs_tol=1e-5), (name, want, got)
        calls = calls_of(size)
        rows[name] = {"compiled": median(repeated(compiled, x, a), calls), "eager": median(repeated(f, x, a), calls)}
    return rows


def measure_loops() -> dict[str, float]:
    """Times of the loops in C++, with one thread."""
    import numpy

    text = ""
    for length in LENGTHS:
        body = "".join(f"    x = {STEPS[i % len(STEPS)][0]};\n" for i in range(length))
        head = "float x = in[i]; const float a = other[i];"
        text += f'extern "C" void chain{length}(long n, const float* in, const float* other, float* out) {{\n'
        text += f"  for (long i = 0; i < n; ++i) {{\n    {head}\n{body}    out[i] = x;\n  }}\n}}\n"
        text += f'extern "C" void sum{length}(long n, const float* in, const float* other, float* out) {{\n  float sum = 0;\n'
        text += f"  for (long i = 0; i < n; ++i) {{\n    {head}\n{body}    sum += x;\n  }}\n  *out = sum;\n}}\n"
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "loops.cc", Path(folder) / "loops.so"
        source.write_text(text)
        flags = ["-Ofast", "-march=native", "-mprefer-vector-width=512", "-shared", "-fPIC"]
        subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
        loops = ctypes.CDLL(str(library))
        for name, length, size, reduces in cases():
            x, a, out = (numpy.random.rand(size).astype(numpy.float32) for _ in range(3))
            f = getattr(loops, f"{'sum' if reduces else 'chain'}{length}")
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, a, out)]

            def run(f=f, size=size, pointers=pointers):
                for _ in range(calls_of(size)):
                    f(ctypes.c_long(size), *pointers)

            rows[name] = median(run, calls_of(size))
    return rows


def main() -> None:
    """Runs the benchmark."""
    options, ours, theirs = peers.measured(__doc__, "benchmarks.chains", measure)
    loops = measure_loops() if options.threads == 1 else {}
    table = Table(title=f"Microseconds per call, {options.threads} thread(s)")
    table.add_column("chain")
    columns = ["Program", "one by one", *(["loop in C++", "Program / loop"] if loops else [])]
    columns += ["torch.compile", "eager PyTorch", "Program / best of PyTorch"] if theirs else []
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in ours.items():
        cells = [name, f"{row['compiled']:,.1f}", f"{row['eager']:,.1f}"]
        if loops:
            cells += [f"{loops[name]:,.1f}", f"{row['compiled'] / loops[name]:.2f}"]
        if theirs:
            peer = theirs[name]
            cells += [
                f"{peer['compiled']:,.1f}",
                f"{peer['eager']:,.1f}",
                f"{row['compiled'] / min(peer.values()):.2f}",
            ]
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


if __name__ == "__main__":
    main()
