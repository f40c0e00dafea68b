"""`python -m benchmarks.programs`: Programs beside the same calls one by one, and beside `torch.compile` (--peers).

Times on the client's thread are medians until the call returns; others are medians until a number of the result was read.
PyTorch runs in a process of its own, with as many threads, and its compile time is that of the first call.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import peers

CASES = ("100 additions of 8x8", "100 additions of 65,536", "GELU MLP, 64 x 256", "softmax written out, 256 x 1024",
         "RMS norm written out, 256 x 1024", "attention written out, 8 heads of 64 x 64")  # fmt: skip


def functions(torch) -> dict[str, tuple[Callable, tuple]]:
    """The functions by case, with their arguments."""
    torch.manual_seed(0)
    w1, w2, scale = torch.randn(256, 1024) / 16, torch.randn(1024, 256) / 32, torch.ones(1024)

    def additions(x):
        for i in range(100):
            x = x + float(i)
        return x

    def mlp(x):
        h = x @ w1
        h = 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3)))
        return h @ w2

    def softmax(x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)

    def rms_norm(x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * scale

    def attention(q, k, v):
        s = q @ k.transpose(-2, -1) * 0.125
        e = torch.exp(s - s.amax(-1, keepdim=True))
        return (e / e.sum(-1, keepdim=True)) @ v

    heads = tuple(torch.randn(8, 64, 64) for _ in range(3))
    arguments = [(torch.ones(8, 8),), (torch.ones(65_536),), (torch.randn(64, 256),), (torch.randn(256, 1024),),
                 (torch.randn(256, 1024),), heads]  # fmt: skip
    return dict(zip(CASES, zip([additions, additions, mlp, softmax, rms_norm, attention], arguments)))


def median(run: Callable[[], None], after: Callable[[], None], seconds: float = 1.0) -> float:
    """The median time of `run` in microseconds; `after` runs after each, untimed."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 20:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        after()
    return sorted(times)[len(times) // 2] * 1e6


def measure(package: str) -> dict[str, dict[str, float]]:
    """Times of all cases in this process."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    rows: dict[str, dict[str, float]] = {}
    torch.set_grad_enabled(False)
    for name, (f, args) in functions(torch).items():
        compiled = torch.compile(f) if package == "torch" else torch.compiler.trace(f, *args)
        start = time.perf_counter()
        first = compiled(*args).flatten()[0].item()
        row = {"first call": (time.perf_counter() - start) * 1e6}
        assert abs(first - f(*args).flatten()[0].item()) <= 1e-4 * abs(first) + 1e-5, name
        held = []
        row["issue"] = median(lambda: held.append(compiled(*args)), lambda: held.pop().flatten()[0].item())
        row["eager issue"] = median(lambda: held.append(f(*args)), lambda: held.pop().flatten()[0].item())
        row["result"] = median(lambda: compiled(*args).flatten()[0].item(), lambda: None)
        row["eager result"] = median(lambda: f(*args).flatten()[0].item(), lambda: None)
        rows[name] = row
    return rows


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="compare with PyTorch, installed in a separate environment")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--package", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["BENCH_THREADS"] = str(options.threads)
    if options.package:
        print(json.dumps(measure(options.package)))
        return
    ours = measure("teletensor")
    theirs: dict[str, dict[str, float]] = {}
    if options.peers:
        command = [peers.interpreter("rich"), "-m", "benchmarks.programs", "--package", "torch", "--threads", str(options.threads)]
        theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    table = Table(title=f"Microseconds per call, {options.threads} thread(s)")
    table.add_column("function")
    columns = ("first call", "issue", "eager issue", "result", "eager result")
    for column in columns:
        table.add_column(column, justify="right")
    if theirs:
        for column in ("first call", "result", "eager result"):
            table.add_column(f"PyTorch: {column}", justify="right")
        table.add_column("ratio of results", justify="right")
    for name, row in ours.items():
        cells = [name, *(f"{row[c]:,.1f}" for c in columns)]
        if theirs:
            peer = theirs[name]
            best = min(peer["result"], peer["eager result"])
            cells += [f"{peer[c]:,.1f}" for c in ("first call", "result", "eager result")] + [f"{row['result'] / best:.2f}"]
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


if __name__ == "__main__":
    main()
