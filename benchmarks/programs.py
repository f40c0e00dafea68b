"""`python -m benchmarks.programs`: Programs beside the same calls one by one, and beside `torch.compile` (--peers).

The training steps are a Program of forward and backward, and an optimizer's step as a call of its own; "whole" ones are
one Program of all three. With --operators, Programs of functions that are written out and of the operators that replace
them run by turns, and the times are the least medians of five.

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
from benchmarks.gpt import make_gpt

CASES = ("100 additions of 8x8", "100 additions of 65,536", "GELU MLP, 64 x 256", "softmax written out, 256 x 1024",
         "RMS norm written out, 256 x 1024", "attention written out, 8 heads of 64 x 64",
         "(a * b + a).sum() of 100,000", "(a * b + a).sum() of 10,000,000", "(gelu(a) * b).sum() of 1,000,000",
         "mean of squared differences, rows of 1,000 x 4,096", "label smoothing written out, 1,024 x 1,000")  # fmt: skip


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

    def total(a, b):
        return (a * b + a).sum()

    def gelu_total(a, b):
        return (torch.nn.functional.gelu(a) * b).sum()

    def row_errors(a, b):
        return ((a - b) ** 2).mean(-1)

    def smoothed_loss(x, target):
        logs = torch.nn.functional.log_softmax(x, -1)
        return (0.9 * -logs.gather(-1, target.unsqueeze(1)).squeeze(1) - 0.1 * logs.mean(-1)).mean()

    heads = tuple(torch.randn(8, 64, 64) for _ in range(3))
    sizes = (100_000,), (10_000_000,), (1_000_000,), (1000, 4096)
    small, large, middle, matrix = (tuple(torch.randn(*each) for _ in range(2)) for each in sizes)
    arguments = [(torch.ones(8, 8),), (torch.ones(65_536),), (torch.randn(64, 256),), (torch.randn(256, 1024),),
                 (torch.randn(256, 1024),), heads, small, large, middle, matrix,
                 (torch.randn(1024, 1000), torch.randint(0, 1000, (1024,)))]  # fmt: skip
    called = [additions, additions, mlp, softmax, rms_norm, attention, total, total, gelu_total, row_errors, smoothed_loss]
    return dict(zip(CASES, zip(called, arguments)))


TRAINING = ("training: GELU MLP, batch 64", "training: GPT of 4 layers, 16 x 64", "training: 8 residual blocks, 4,096 x 64")


def training_steps(torch) -> dict[str, tuple[Callable, tuple, Callable]]:
    """Functions of forward and backward by case, with their arguments and the optimizer's step."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.linear, self.scale = nn.LayerNorm(width), nn.Linear(width, width), nn.Parameter(torch.ones(width))

        def forward(self, x):
            h = self.linear(self.norm(x))
            return x + self.scale * h * torch.sigmoid(1.7 * h)

    mlp = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 16))
    residual = nn.Sequential(*(Residual(64) for _ in range(8)), nn.Linear(64, 16))
    arguments = [(torch.randn(64, 256), torch.randint(0, 16, (64,))),
                 (torch.randint(0, 65, (16, 64)), torch.randint(0, 65, (1024,))),
                 (torch.randn(4096, 64), torch.randint(0, 16, (4096,)))]  # fmt: skip
    cases = {}
    for name, model, args in zip(TRAINING, (mlp, make_gpt(torch, 65), residual), arguments):
        forward = torch.compile(model) if torch.__name__ == "torch" and os.environ["BENCH_COMPILE"] == "1" else model
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

        def step(x, target, forward=forward, optimizer=optimizer):
            optimizer.zero_grad()
            loss = F.cross_entropy(forward(x), target)
            loss.backward()
            return loss.detach()

        cases[name] = (step, args, optimizer.step)
    return cases


def measure_training(package: str) -> dict[str, dict[str, float]]:
    """Times of whole training steps in this process."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    rows = {}
    steps = training_steps(torch)
    torch.zeros(1).item()  # waits until the parameters exist
    for name, (f, args, update) in steps.items():
        compiled = f if package == "torch" else torch.compiler.trace(f, *args)

        def run(call, args=args, update=update):
            loss = call(*args)
            update()
            return loss

        start = time.perf_counter()
        run(compiled).item()
        rows[name] = {"first call": (time.perf_counter() - start) * 1e6}
        held = []

        def whole(x, target, f=f, update=update):
            loss = f(x, target)
            update()
            return loss

        if package != "torch":
            program = torch.compiler.trace(whole, *args)
            rows[name]["whole issue"] = median(lambda: held.append(program(*args)), lambda: held.pop().item(), 4.0)
            rows[name]["whole result"] = median(lambda: program(*args).item(), lambda: None, 4.0)
        for prefix, call in (("", compiled), ("eager ", f)):
            rows[name][prefix + "issue"] = median(lambda c=call: held.append(run(c)), lambda: held.pop().item(), 4.0)
            rows[name][prefix + "result"] = median(lambda c=call: run(c).item(), lambda: None, 4.0)
    return rows


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
    cases = functions(torch)
    torch.zeros(1).item()  # waits until the arguments exist
    for name, (f, args) in cases.items():
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


def built_in(torch) -> dict[str, Callable]:
    """The operator of each function that is written out."""
    F = torch.nn.functional  # noqa: N806
    scale = torch.ones(1024)
    return {
        "softmax written out, 256 x 1024": lambda x: x.softmax(-1),
        "RMS norm written out, 256 x 1024": lambda x: F.rms_norm(x, (1024,), scale, 1e-6),
        "attention written out, 8 heads of 64 x 64": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.125),
        "label smoothing written out, 1,024 x 1,000": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
        "log probabilities of targets, 1,024 x 1,000": F.cross_entropy,
    }


def measure_operators() -> None:
    """Prints the times of functions that are written out, and of their operators."""
    torch = importlib.import_module("teletensor")
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    torch.set_grad_enabled(False)
    cases = functions(torch)
    picked = lambda x, t: -x.log_softmax(-1)[torch.arange(1024), t].mean()  # noqa: E731
    cases["log probabilities of targets, 1,024 x 1,000"] = (picked, cases["label smoothing written out, 1,024 x 1,000"][1])
    for name, operator in built_in(torch).items():
        f, args = cases[name]
        both = [torch.compiler.trace(g, *args) for g in (f, operator)]
        least = [float("inf")] * 2
        for turn in range(10):
            program = both[turn % 2]
            found = median(lambda p=program: p(*args).flatten()[0].item(), lambda: None, 0.3)  # noqa: B023
            least[turn % 2] = min(least[turn % 2], found)
        print(f"{name}: {least[0]:.1f} us, the operator {least[1]:.1f} us, ratio {least[0] / least[1]:.2f}")


def peer_rows(command: list[str], compiles: str) -> dict[str, dict[str, float]]:
    """What PyTorch measures."""
    environment = {**os.environ, "BENCH_COMPILE": compiles}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return json.loads(output.splitlines()[-1])


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="compare with PyTorch, installed in a separate environment")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--training", action="store_true", help="whole training steps instead of functions")
    parser.add_argument("--operators", action="store_true", help="functions beside their operators")
    parser.add_argument("--package", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["BENCH_THREADS"] = str(options.threads)
    if options.operators:
        measure_operators()
        return
    run = measure_training if options.training else measure
    if options.package:
        print(json.dumps(run(options.package)))
        return
    ours = run("teletensor")
    theirs: dict[str, dict[str, float]] = {}
    if options.peers:
        command = [peers.interpreter("rich"), "-m", "benchmarks.programs", "--package", "torch", "--threads", str(options.threads),
                   *(["--training"] if options.training else [])]  # fmt: skip
        theirs = peer_rows(command, "1")
        if options.training:  # the compiled model is another run, because compilation changes the module
            for name, row in peer_rows(command, "0").items():
                theirs[name]["eager result"] = row["result"]
    table = Table(title=f"Microseconds per call, {options.threads} thread(s)")
    table.add_column("function")
    columns = ["first call", "issue", "eager issue", "result", "eager result"]
    columns += ["whole issue", "whole result"] if options.training else []
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
