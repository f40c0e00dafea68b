"""`python -m benchmarks.compiled`: torch.compile with the default backend, beside single calls and PyTorch (--peers).

"First call": capture, the backend's work and one call until its result was read. "Issue": the caller's thread per call,
while the engine or PyTorch's kernels run or have run; sizes are small, so that it is the cost of guards and of the call.
"Result": until a number of the result was read. "Guards": one check of the guards alone, with the call from
Python. Microseconds, medians; PyTorch runs in a process of its own.
"""

from __future__ import annotations

import importlib
import inspect
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.gpt import make_gpt

COLUMNS = ("first call", "guards", "issue", "result", "single issue", "single result")


def cases(torch) -> dict[str, tuple[Callable, tuple]]:
    """Functions and their arguments."""
    nn = torch.nn
    torch.manual_seed(0)

    def chain(x):
        for _ in range(50):
            x = torch.relu(x + 1)
        return x

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(8, 8) for _ in range(50))

        def forward(self, *xs):
            total = xs[0]
            for x, part in zip([x for x in xs for _ in range(5)], self.parts):
                total = total + part(x)
            return total

    mlp = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    return {
        "100 operators, 8 x 8": (chain, (torch.randn(8, 8),)),
        "MLP, batch of 4": (mlp, (torch.randn(4, 64),)),
        "100 parameters, 10 inputs": (Wide(), tuple(torch.randn(4, 8) for _ in range(10))),
        "GPT of 4 layers, 1 x 64": (make_gpt(torch, 65), (torch.randint(0, 65, (1, 64)),)),
    }


def median(call: Callable[[], object], after: Callable[[], object], seconds: float = 1.0) -> float:
    """Microseconds of call(); after() is not counted."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < 20 or time.perf_counter() < until:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        after()
    return statistics.median(times) * 1e6


def guards_time(torch, f: Callable, compiled: Callable, args: tuple) -> float:
    """Microseconds of one check of the guards of compiled(*args), which was called with these arguments."""
    is_module = isinstance(f, torch.nn.Module)
    count = 20_000
    if torch.__name__ == "torch":
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list

        forward = type(f).forward if is_module else f
        code = forward.__code__
        given = dict(zip(code.co_varnames, (f, *args) if is_module else args))
        if code.co_flags & inspect.CO_VARARGS:
            given = {"self": f, code.co_varnames[code.co_argcount]: args}
        given |= inspect.getclosurevars(forward).nonlocals
        entries = _debug_get_cache_entry_list(code)
        if not entries:  # a module of the package itself: the frame is that of a function that calls it
            return float("nan")
        check, state = entries[0].guard_manager.check, given
        assert check(state)
        return min(timeit.repeat(lambda: check(state), number=count, repeat=5)) / count * 1e6
    from teletensor._dynamo import eval_frame

    slots = (compiled._compiled.__wrapped__, (f, *args), {}) if is_module else (f, args, {})
    caches = (c for compiler in eval_frame._compilers for known in compiler.caches.values() for c, _ in known.values())
    checks = [guards.check for cache in caches for guards, _ in cache.entries() if guards.check(slots)]
    assert len(checks) == 1
    check = checks[0]
    return min(timeit.repeat(lambda: check(slots), number=count, repeat=5)) / count * 1e6


def measure(package: str) -> dict[str, dict[str, float]]:
    """Times of this process by case and column."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    rows = {}
    with torch.no_grad():
        for name, (f, args) in cases(torch).items():
            want = f(*args).flatten()[0].item()
            compiled = torch.compile(f)
            start = time.perf_counter()
            got = compiled(*args).flatten()[0].item()
            row = {"first call": (time.perf_counter() - start) * 1e6}
            assert abs(got - want) <= 1e-4 * abs(want) + 1e-5, name
            row["guards"] = guards_time(torch, f, compiled, args)
            held: list = []
            for prefix, call in (("", compiled), ("single ", f)):
                row[prefix + "issue"] = median(lambda c=call, a=args: held.append(c(*a)), lambda: held.pop().flatten()[0].item())
                row[prefix + "result"] = median(lambda c=call, a=args: c(*a).flatten()[0].item(), lambda: None)
            rows[name] = row
    return rows


def main() -> None:
    """Runs the benchmark."""
    options, ours, theirs = peers.measured(__doc__, "benchmarks.compiled", measure)
    table = Table(title=f"Microseconds per call, {options.threads} thread(s)")
    table.add_column("function")
    for column in COLUMNS:
        table.add_column(column, justify="right")
        if theirs:
            table.add_column("PyTorch", justify="right")
    for name in ours:
        cells = [name]
        for column in COLUMNS:
            cells += [f"{r[name][column]:,.1f}" for r in (ours, theirs) if r]
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
