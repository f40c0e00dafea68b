"""How an engine divides the processors: `python -m benchmarks.shares` prints shares of principals, and a small client's times.
With `--device cuda` it divides a GPU: shares of the work that clients with equal work have done, and a small client's times.

Every client is a process with a token of its principal. The shares are of the processor time that the engine reports, in
seconds in which all clients have work: a client reads a result when the engine already has more of its work to do.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "teletensor.cli"]
DAEMON = os.environ.get("TELETENSOR_DAEMON", str(ROOT / "build/bin/teletensord"))
PATH = os.pathsep.join(filter(None, [str(ROOT / "build/python"), os.environ.get("PYTHONPATH")]))
SECONDS = 10.0
WORK = {  # a few milliseconds each
    "matmul": "(a @ a).sum()",
    "pointwise": "((a * 2).exp() + a).tanh().sum()",
    "small": "sum((b + i for i in range(200)), b).sum()",
    "sort": "a[:96].flatten().sort().values[0]",
}
FOR_GPU = "(a.repeat(8, 8) @ a.repeat(8, 8)).sum()"
CLIENT = """
import collections, json, sys, time
import teletensor as torch
kind, seconds, device = sys.argv[1], float(sys.argv[2]), sys.argv[4]
a, b = torch.rand(384, 384, device=device), torch.rand(8, device=device)
work = eval("lambda: " + sys.argv[3])
work().item()
print("ready", flush=True)
sys.stdin.readline()
end, count, times, queued = time.perf_counter() + seconds, 0, [], collections.deque()
while time.perf_counter() < end:
    start = time.perf_counter()
    if kind == "reads":
        (b + 1).sum().item()
        times.append(time.perf_counter() - start)
        time.sleep(0.001)
    else:
        queued.append(work().item_async())
        if len(queued) > 6:
            queued.popleft().wait()
    count += 1
times.sort()
print(json.dumps([count, times[len(times) // 2] if times else 0, times[len(times) * 99 // 100] if times else 0]), flush=True)
"""


class Engine:
    """A teletensord with principals, for the time of a measurement."""

    def __init__(self, folder: Path, *options: str):
        self.folder, self.file, self.socket = folder, folder / "principals.json", folder / "engine.sock"
        self.file.write_text('{"principals": []}')
        self.file.chmod(0o600)
        self.options = options
        self.tokens: dict[str, str] = {}

    def add(self, name: str, *options: str) -> None:
        command = [*COMMAND, "user", "--file", self.file, "add", name, *options]
        self.tokens[name] = self.output(command).strip()

    def output(self, command: list) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": PATH}).stdout

    def __enter__(self) -> Engine:
        self.add("root", "--role", "operator")
        command = [DAEMON, "--listen", f"unix:{self.socket}", "--token-file", self.folder / "token",
                   "--principals", self.file, *self.options]  # fmt: skip
        self.process = subprocess.Popen(command, stderr=(self.folder / "log").open("w"))
        while not self.socket.exists():
            if self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait()

    def seconds(self) -> dict[str, float]:
        """Processor time by principal."""
        command = [*COMMAND, "--address", f"unix:{self.socket}", "--token", self.tokens["root"], "status", "--json"]
        status = json.loads(self.output(command))
        return {each["name"]: each["cpu_seconds"] for each in status["principals"]}

    def client(self, name: str, kind: str, seconds: float, work: str, device: str = "cpu") -> subprocess.Popen:
        environment = {**os.environ, "TELETENSOR_ADDRESS": f"unix:{self.socket}", "TELETENSOR_TOKEN": self.tokens[name],
                       "PYTHONPATH": PATH}  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-c", CLIENT, kind, str(seconds), work, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=environment,
        )  # fmt: skip


def run(engine: Engine, clients: list[subprocess.Popen], seconds: float = SECONDS) -> tuple[dict[str, float], list[list[float]]]:
    """Starts the clients' work at once. Returns the time of each principal in the middle of it, and what each client prints."""
    for each in clients:
        each.stdout.readline()
    for each in clients:
        each.stdin.write("\n")
        each.stdin.flush()
    time.sleep(seconds * 0.1)
    before = engine.seconds()
    time.sleep(seconds * 0.7)
    after = engine.seconds()
    printed = [json.loads(each.communicate()[0]) for each in clients]
    return {name: after[name] - before.get(name, 0) for name in after}, printed


WEIGHTS = {"one": 1, "two": 2, "four": 4}


def weighted(folder: str) -> Engine:
    """An engine with a principal of each weight."""
    engine = Engine(Path(folder))
    for name, weight in WEIGHTS.items():
        engine.add(name, "--weight", str(weight))
    return engine


def weights() -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        with weighted(folder) as engine:
            clients = [engine.client(name, "work", SECONDS, WORK[work]) for name in WEIGHTS for work in ("matmul", "pointwise", "sort")]
            used, _ = run(engine, clients)
    total = sum(used[name] for name in WEIGHTS)
    return [(f"weight {weight} of 7, 3 clients", f"{used[name] / total:.3f}", f"{weight / 7:.3f}", f"{used[name] / total * 7 / weight:.2f}")
            for name, weight in WEIGHTS.items()]  # fmt: skip


def equal(count: int = 64) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder))
        names = [f"client{i}" for i in range(count)]
        for name in names:
            engine.add(name)
        with engine:
            kinds = list(WORK.values())
            seconds = 3 * SECONDS  # so that one kernel is a small part of a client's time
            clients = [engine.client(name, "work", seconds, kinds[i % len(kinds)]) for i, name in enumerate(names)]
            used, _ = run(engine, clients, seconds)
    shares = sorted(used[name] for name in names)
    mean = sum(shares) / count
    return [(f"{which} of {count} equal clients, mixed work", f"{value / sum(shares):.4f}", f"{1 / count:.4f}", f"{value / mean:.2f}")
            for which, value in (("least", shares[0]), ("median", shares[count // 2]), ("most", shares[-1]))]  # fmt: skip


def weights_on(device: str) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        with weighted(folder) as engine:
            clients = [engine.client(name, "work", SECONDS, FOR_GPU, device) for name in WEIGHTS]
            _, printed = run(engine, clients)
    counts = dict(zip(WEIGHTS, (count for count, *_ in printed), strict=True))
    total = sum(counts.values())
    return [(f"weight {weight} of 7, {counts[name]} products", f"{counts[name] / total:.3f}", f"{weight / 7:.3f}",
             f"{counts[name] / total * 7 / weight:.2f}") for name, weight in WEIGHTS.items()]  # fmt: skip


def small(device: str = "cpu", load: str = WORK["pointwise"]) -> list[tuple[str, ...]]:
    rows, alone = [], []
    for title, busy in (("alone", 0), ("beside a client that saturates the engine", 1), ("beside four such clients", 4)):
        with tempfile.TemporaryDirectory() as folder:
            engine = Engine(Path(folder))
            engine.add("small")
            engine.add("busy")
            with engine:
                clients = [engine.client("small", "reads", SECONDS, WORK["small"], device)]
                clients += [engine.client("busy", "work", SECONDS, load, device) for _ in range(busy)]
                _, printed = run(engine, clients)
        _, median, p99 = printed[0]
        alone = alone or [median, p99]
        for what, value, base in (("p50", median, alone[0]), ("p99", p99, alone[1])):
            rows.append((f"item() {what} {title}, us", f"{value * 1e6:.0f}", "", f"{value / base:.1f}"))
    return rows


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    device = parser.parse_args().device
    measures = {"weights": weights, "equal clients": equal, "a small client": small}
    if device != "cpu":
        measures = {"weights": functools.partial(weights_on, device), "a small client": functools.partial(small, device, FOR_GPU)}
    table = Table(title=f"shares of {'the processors' if device == 'cpu' else device}", title_justify="left")
    for column, side in (("what", "left"), ("measured", "right"), ("wanted", "right"), ("ratio", "right")):
        table.add_column(column, justify=side)
    console = Console(width=100)
    for name, measure in measures.items():
        with console.status(f"{name}: about {SECONDS * 3:.0f} s"):
            for row in measure():
                table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
