"""``python -m benchmarks.distributed``: collectives, data-parallel steps, launch and a controller on one host, compared
with PyTorch's Gloo.

Every rank is a process with one thread for kernels, and for teletensor an engine of its own. Writes
build/bench-distributed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import peers

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ["all_reduce", "mlp", "gpt", "fsdp", "pipeline", "launch", "controller"]
SIZES = [4, 1024, 16 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20]


def free_port() -> int:
    """Returns a port that is not in use."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_ranks(library: str, workload: str, ranks: int, seconds: float, sizes=(), backend: str = "") -> list[dict]:
    """Runs a workload on a number of ranks; returns what each printed."""
    python = peers.interpreter() if library == "torch" else sys.executable
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks),
              "OMP_NUM_THREADS": "1", "TELETENSOR_GROUP_TOKEN": secrets.token_hex(16),
              "BENCH_BACKEND": backend, "PYTHONPATH": f"{ROOT / 'build/python'}:{ROOT / 'python'}"}  # fmt: skip
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        common.pop(name, None)
    if library == "torch":
        common.pop("PYTHONPATH")
    worker = Path(__file__).with_name("worker.py")
    processes = [
        subprocess.Popen([python, str(worker), library, workload, str(seconds), *map(str, sizes)],
                         env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    for rank, process in enumerate(processes):
        if process.returncode != 0:
            raise SystemExit(f"benchmarks.distributed: rank {rank} of {library} exited with {process.returncode}")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f}"


def main() -> None:
    """Measures and prints tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1, help="per figure")
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--backend", default="", help="of teletensor: shm, gloo or empty for its own choice")
    parser.add_argument("--workloads", nargs="*", default=WORKLOADS, choices=WORKLOADS)
    args = parser.parse_args()
    console = Console()
    results: dict = {}
    for ranks in args.ranks:
        if "all_reduce" in args.workloads:
            rows = {library: run_ranks(library, "all_reduce", ranks, args.seconds, SIZES, args.backend)
                    for library in ("torch", "teletensor")}  # fmt: skip
            table = Table(title=f"all_reduce on {ranks} ranks, microseconds", title_justify="left")
            for name in ("bytes", "torch", "ours", "ratio", "torch, read", "ours, read", "ratio"):
                table.add_column(name, justify="right")
            for size in SIZES:
                theirs, ours = (max_by_rank(rows[library], str(size)) for library in ("torch", "teletensor"))
                table.add_row(f"{size:,}", *cells(theirs, ours, "queued"), *cells(theirs, ours, "read"))
            console.print(table)
            results[f"all_reduce {ranks}"] = rows
        for name, show in (("fsdp", show_fsdp), ("pipeline", show_pipeline)):
            if name in args.workloads:
                results[f"{name} {ranks}"] = rows = run_ranks("teletensor", name, ranks, args.seconds, (), args.backend)
                show(console, ranks, [row["result"] for row in rows])
        for model in {"mlp", "gpt"}.intersection(args.workloads):
            results[f"{model} {ranks}"] = training(console, model, ranks, args)
    if "launch" in args.workloads:
        results["launch"] = seconds = min(launch_seconds(4) for _ in range(3))
        console.print(f"launch of 4 ranks with private engines to their first collective: {seconds:.2f} s")
    if "controller" in args.workloads:
        results["controller"] = figures = json.loads(
            subprocess.run([sys.executable, "-m", "benchmarks.distributed.controller"], check=True, capture_output=True,
                           text=True, cwd=ROOT).stdout
        )  # fmt: skip
        console.print(
            f"one process controls 4 engines, microseconds of its time: all_reduce of 4 tensors {figures['all_reduce']:.1f}, "
            f"of a DTensor {figures['redistribute']:.1f}; sum of two DTensors {figures['add']:.1f}"
        )
    (ROOT / "build/bench-distributed.json").write_text(json.dumps(results, indent=1))


def training(console: Console, model: str, ranks: int, args) -> dict:
    """Measures a training step and prints a table."""
    rows = {library: run_ranks(library, model, ranks, args.seconds, (), args.backend) for library in ("torch", "teletensor")}
    table = Table(title=f"training step of the {model} on {ranks} ranks, microseconds", title_justify="left")
    for name in ("", "torch", "ours", "ratio"):
        table.add_column(name, justify="right")
    figures = {
        library: {name: max(row["result"][name] for row in found) for name in ("alone", "all_reduce", "ddp")}
        for library, found in rows.items()
    }
    for name, label in (("alone", "without DDP"), ("all_reduce", "all_reduce of the gradients"), ("ddp", "with DDP")):
        theirs, ours = figures["torch"][name], figures["teletensor"][name]
        table.add_row(label, microseconds(theirs), microseconds(ours), f"{ours / theirs:.2f}")
    hidden = {library: 1 - (f["ddp"] - f["alone"]) / f["all_reduce"] for library, f in figures.items()}
    table.add_row("communication hidden", *(f"{max(0.0, hidden[library]):.0%}" for library in ("torch", "teletensor")), "")
    console.print(table)
    return rows


def show_fsdp(console: Console, ranks: int, rows: list[dict]) -> None:
    """Compares a step of sharded layers with the cost model: the step alone, and per layer two collectives."""
    found = {name: max(row[name] for row in rows) for name in rows[0]}
    predicted = found["alone"] + found["layers"] * (found["all_gather"] + found["reduce_scatter"])
    table = Table(title=f"step of {found['layers']} sharded layers on {ranks} ranks, microseconds", title_justify="left")
    for name in ("alone", "all_gather of a layer", "reduce_scatter", "predicted, nothing hidden", "measured", "ratio"):
        table.add_column(name, justify="right")
    names = ("alone", "all_gather", "reduce_scatter")
    table.add_row(*(microseconds(found[name]) for name in names), microseconds(predicted), microseconds(found["sharded"]),
                  f"{found['sharded'] / predicted:.2f}")  # fmt: skip
    console.print(table)


def show_pipeline(console: Console, ranks: int, rows: list[dict]) -> None:
    """Compares pipelined steps with the cost model: one rank's share of the work, plus (ranks - 1) microbatches."""
    alone = max(row["alone"] for row in rows)
    table = Table(title=f"pipelined step on {ranks} ranks, microseconds; alone: {microseconds(alone)}", title_justify="left")
    for name in ("microbatches", "predicted", "measured", "ratio"):
        table.add_column(name, justify="right")
    for count in (1, 2, 4, 8):
        predicted = alone / ranks * (count + ranks - 1) / count
        measured = max(row[f"{count} microbatches"] for row in rows)
        table.add_row(str(count), microseconds(predicted), microseconds(measured), f"{measured / predicted:.2f}")
    console.print(table)


def launch_seconds(ranks: int) -> float:
    """Seconds from the start of ``teletensor launch`` until all ranks have read the result of a collective."""
    begin = time.time()
    script = Path(__file__).with_name("first_collective.py")
    output = subprocess.run(
        [sys.executable, "-m", "teletensor.cli", "launch", "-n", str(ranks), str(script)], check=True, capture_output=True, text=True
    ).stdout
    return max(float(found) for found in re.findall(r"finished at ([0-9.]+)", output)) - begin


def max_by_rank(rows: list[dict], size: str) -> dict[str, float]:
    """Returns the slowest rank's times."""
    return {name: max(row["result"][size][name] for row in rows) for name in ("queued", "read")}


def cells(theirs: dict, ours: dict, name: str) -> tuple[str, str, str]:
    return microseconds(theirs[name]), microseconds(ours[name]), f"{ours[name] / theirs[name]:.2f}"


if __name__ == "__main__":
    main()
