"""``python -m benchmarks.distributed.namespaces``: all_reduce and a data-parallel step between two network namespaces,
compared with PyTorch's Gloo.

Requires root. The ranks are connected by a virtual cable, whose rate can be limited; both libraries use Gloo over TCP. The
libraries alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.python.distributed.failures.test_network import Hosts

from .. import peers
from .__main__ import ROOT, free_port

SIZES = [4, 16 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20]
LIBRARIES = ("torch", "teletensor")


def run(library: str, workload: str, hosts: Hosts, seconds: float, bucket_mb: float = 0) -> list[dict]:
    """Returns the result of each rank."""
    python = peers.interpreter() if library == "torch" else sys.executable
    environment = {**os.environ, "MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
                   "OMP_NUM_THREADS": "1", "TELETENSOR_GROUP_TOKEN": secrets.token_hex(16),
                   "TELETENSOR_GROUP_BACKEND": "gloo", "BENCH_BUCKET_MB": str(bucket_mb or ""),
                   "PYTHONPATH": f"{ROOT / 'build/python'}:{ROOT / 'python'}"}  # fmt: skip
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    if library == "torch":
        environment.pop("PYTHONPATH")
    worker = Path(__file__).with_name("worker.py")
    processes = [
        subprocess.Popen(
            [*hosts.run_on(rank), python, str(worker), library, workload, str(seconds), *map(str, SIZES)],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": "0", "GLOO_SOCKET_IFNAME": hosts.links[rank]},
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    return [json.loads(process.communicate(timeout=600)[0].splitlines()[-1])["result"] for process in processes]


def all_reduce(hosts: Hosts, seconds: float, rounds: int) -> Table:
    """Medians of the slower rank's time per size."""
    times: dict[str, list[dict]] = {library: [] for library in LIBRARIES}
    for _ in range(rounds):
        for library in LIBRARIES:
            results = run(library, "all_reduce", hosts, seconds)
            times[library].append({size: max(r[str(size)]["queued"] for r in results) for size in SIZES})
    table = Table(title="all_reduce between two network namespaces, microseconds (medians)", title_justify="left")
    for name in ("bytes", "torch's Gloo", "ours", "speed"):
        table.add_column(name, justify="right")
    for size in SIZES:
        theirs, ours = (statistics.median(r[size] for r in times[library]) for library in LIBRARIES)
        table.add_row(f"{size:,}", f"{theirs * 1e6:,.0f}", f"{ours * 1e6:,.0f}", f"{theirs / ours:.2f}")
    return table


def step(workload: str, hosts: Hosts, seconds: float, rounds: int, bucket_mb: float) -> Table:
    """Medians of a training step without and with DDP, and how much of the communication is hidden behind it."""
    figures: dict[str, list[dict]] = {library: [] for library in LIBRARIES}
    for _ in range(rounds):
        for library in LIBRARIES:
            results = run(library, workload, hosts, seconds, bucket_mb)
            figures[library].append({name: max(r[name] for r in results) for name in results[0]})
    table = Table(title=f"{workload} between two network namespaces, milliseconds (medians)", title_justify="left")
    for name in ("", "torch", "ours", "ratio"):
        table.add_column(name, justify="left" if not name else "right")
    medians = {library: {name: statistics.median(f[name] for f in figures[library]) for name in figures[library][0]}
               for library in LIBRARIES}  # fmt: skip
    theirs, ours = (medians[library] for library in LIBRARIES)
    for name, text in (("alone", "step without DDP"), ("all_reduce", "all_reduce of the gradients alone"), ("ddp", "step")):
        table.add_row(text, f"{theirs[name] * 1e3:.1f}", f"{ours[name] * 1e3:.1f}", f"{ours[name] / theirs[name]:.2f}")
    hidden = [max(0.0, 1 - (f["ddp"] - f["alone"]) / f["all_reduce"]) for f in (theirs, ours)]
    table.add_row("communication hidden", *(f"{share:.0%}" for share in hidden), "")
    return table


def main() -> None:
    """Measures and prints a table per workload."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="per figure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", nargs="*", default=["all_reduce"], choices=["all_reduce", "mlp", "gpt"])
    parser.add_argument("--rate", help="of the cable in each direction, as tc writes it, such as 1gbit; by default unlimited")
    parser.add_argument("--bucket-mb", type=float, default=0, help="bucket_cap_mb of DDP; by default the libraries' own")
    args = parser.parse_args()
    hosts = Hosts()
    try:
        if args.rate:
            for name, link in zip(hosts.names, hosts.links, strict=True):
                subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", link, "root", "tbf", "rate", args.rate,
                                "burst", "256kb", "latency", "50ms"], check=True)  # fmt: skip
        for workload in args.workloads:
            table = all_reduce(hosts, args.seconds, args.rounds) if workload == "all_reduce" else (
                step(workload, hosts, args.seconds, args.rounds, args.bucket_mb)
            )  # fmt: skip
            Console().print(table)
    finally:
        hosts.remove()


if __name__ == "__main__":
    main()
