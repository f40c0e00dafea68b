"""``python -m benchmarks.distributed.scale``: group creation, barriers and failure detection with many engines on one
host.

Starts one engine process per rank, as light as flags allow (one thread per operation), and drives all of them from this
process, with one session per engine. Prints one row per group size and transport.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build/python"))

import teletensor as torch  # noqa: E402 - from the build
from teletensor import _C  # noqa: E402

DAEMON = ROOT / "build/bin/teletensord"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Engine:
    """An engine process, and a session on it."""

    def __init__(self, folder: Path, number: int):
        self.path = folder / f"{number}.sock"
        environment = {**os.environ, "TELETENSOR_CUDA_PLUGIN": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(name, None)
        command = [str(DAEMON), "--listen", f"unix:{self.path}", "--no-auth", "--threads", "1",
                   "--log-level", "error"]  # fmt: skip
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session = None

    def connect(self) -> None:
        deadline = time.monotonic() + 120
        while not self.path.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("benchmarks.distributed.scale: an engine did not start")
            time.sleep(0.02)
        self.session = _C.connect(f"unix:{self.path}", "", "benchmarks.distributed.scale", 0, "none", False)

    def memory(self) -> tuple[int, int]:
        """Returns the resident and the private bytes."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) << 10 for line in rollup[1:] if line.endswith("kB")}
        return values["Rss"], values["Private_Dirty"] + values["Private_Clean"]

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Group:
    """A group of all engines. Instructions are queued on every engine before the first result is read."""

    def __init__(self, engines: list[Engine], store: str, token: str, name: str, backend: str, timeout: float):
        self.engines = engines
        begin = time.perf_counter()
        self.handles = self.on_all(
            lambda rank: _C.ops.group_create(
                1, store=store, token=token, name=name, rank=rank, size=len(engines), timeout=timeout, backend=backend
            ),
            read=False,
        )
        for engine, handle in zip(engines, self.handles, strict=True):
            _C.set_session(engine.session)
            handle.item()
        self.formed = time.perf_counter() - begin

    def on_all(self, function, read: bool = True) -> list:
        """Calls a function with each rank in its engine's session, and waits for the results if `read`."""
        results = []
        for rank, engine in enumerate(self.engines):
            _C.set_session(engine.session)
            results.append(function(rank))
        if read:
            for engine, result in zip(self.engines, results, strict=True):
                _C.set_session(engine.session)
                result.tolist()
        return results

    def time(self, function, repeats: int) -> float:
        """Returns the median seconds of one call on all ranks, from its issue to the last result."""
        seconds = []
        for _ in range(repeats):
            begin = time.perf_counter()
            self.on_all(function)
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    def time_until_error(self, victim: int) -> tuple[float, int]:
        """Kills an engine while the others wait in a barrier. Returns the seconds until all have an error, and how many of
        the errors name the rank."""
        others = [rank for rank in range(len(self.engines)) if rank != victim]
        results = {}
        for rank in others:
            _C.set_session(self.engines[rank].session)
            results[rank] = _C.ops.group_barrier(self.handles[rank], work=0)
        time.sleep(0.5)
        begin = time.perf_counter()
        self.engines[victim].process.send_signal(signal.SIGKILL)
        named = 0
        for rank in others:
            _C.set_session(self.engines[rank].session)
            try:
                results[rank].item()
            except RuntimeError as error:
                named += f"rank {victim} " in str(error)
        return time.perf_counter() - begin, named


def measure(size: int, backend: str, repeats: int, folder: Path) -> list[str]:
    """Returns a row of the table."""
    begin = time.perf_counter()
    engines = [Engine(folder, rank) for rank in range(size)]
    try:
        for engine in engines:
            engine.connect()
        started = time.perf_counter() - begin
        idle = statistics.median(engine.memory()[1] for engine in engines)
        token = secrets.token_hex(16)
        _C.set_session(engines[0].session)
        store = f"127.0.0.1:{_C.ops.store_serve('127.0.0.1:0', token).item()}"
        groups = []
        for i in range(3):
            groups.append(Group(engines, store, token, f"group-{i}", backend, 60))
            if i < 2:
                groups[i].on_all(lambda rank: _C.ops.group_destroy(groups[i].handles[rank]), read=False)  # noqa: B023
        group = groups[-1]
        barrier = group.time(lambda rank: _C.ops.group_barrier(group.handles[rank], work=0), repeats)
        tensors = group.on_all(lambda rank: torch.ones(1))

        def all_reduce(rank: int):
            return _C.ops.group_all_reduce([tensors[rank]], group.handles[rank], op="max", factor=1.0, work=0)

        reduce = group.time(all_reduce, repeats)
        private = statistics.median(engine.memory()[1] for engine in engines)
        threads = engines[0].threads()
        seconds, named = group.time_until_error(size - 1)
        return [str(size), backend, f"{started:.2f}", f"{groups[0].formed:.3f}",
                f"{statistics.median(g.formed for g in groups[1:]):.3f}", f"{barrier * 1e3:.2f}", f"{reduce * 1e3:.2f}",
                f"{seconds * 1e3:.0f}", f"{named}/{size - 1}", f"{idle / 2**20:.1f}", f"{private / 2**20:.1f}",
                str(threads)]  # fmt: skip
    finally:
        for engine in engines:
            engine.stop()


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8, 16, 32, 64])
    parser.add_argument("--backends", nargs="*", default=["shm", "gloo"], choices=["shm", "gloo"])
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    table = Table(title="Groups of engines on one host (seconds; barrier, all_reduce and error: milliseconds; MiB)",
                  title_justify="left")  # fmt: skip
    for name in ("ranks", "transport", "engines started", "first group", "later groups", "barrier", "all_reduce 4 B",
                 "kill to errors", "naming it", "private idle", "in group", "threads"):  # fmt: skip
        table.add_column(name, justify="right")
    for size in args.sizes:
        for backend in args.backends:
            with tempfile.TemporaryDirectory() as folder:
                row = measure(size, backend, args.repeats, Path(folder))
            print(*row, flush=True)
            table.add_row(*row)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
