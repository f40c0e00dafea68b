"""``python -m benchmarks.distributed.namespaces``: all_reduce between two network namespaces, beside PyTorch's Gloo.

Requires root. The ranks are connected by a virtual cable; both libraries use Gloo over TCP. The libraries alternate.
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

from tests.python.distributed.test_network import Hosts

from .. import peers
from .__main__ import ROOT, free_port

SIZES = [4, 16 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20]


def run(library: str, hosts: Hosts, seconds: float) -> dict[int, float]:
    """Returns the seconds per all_reduce by size, of the slower rank."""
    python = peers.interpreter() if library == "torch" else sys.executable
    environment = {**os.environ, "MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
                   "OMP_NUM_THREADS": "1", "TELETENSOR_GROUP_TOKEN": secrets.token_hex(16),
                   "TELETENSOR_GROUP_BACKEND": "gloo", "TELETENSOR_THREADS": "1",
                   "PYTHONPATH": f"{ROOT / 'build/python'}:{ROOT / 'python'}"}  # fmt: skip
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    if library == "torch":
        environment.pop("PYTHONPATH")
    worker = Path(__file__).with_name("worker.py")
    processes = [
        subprocess.Popen(
            [*hosts.run_on(rank), python, str(worker), library, "all_reduce", str(seconds), *map(str, SIZES)],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": "0", "GLOO_SOCKET_IFNAME": hosts.links[rank]},
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    results = [json.loads(process.communicate(timeout=600)[0].splitlines()[-1])["result"] for process in processes]
    return {size: max(result[str(size)]["queued"] for result in results) for size in SIZES}


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="per figure")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    hosts = Hosts()
    try:
        rounds = [{library: run(library, hosts, args.seconds) for library in ("torch", "teletensor")}
                  for _ in range(args.rounds)]  # fmt: skip
    finally:
        hosts.remove()
    table = Table(title="all_reduce between two network namespaces, microseconds (medians)", title_justify="left")
    for name in ("bytes", "torch's Gloo", "ours", "speed"):
        table.add_column(name, justify="right")
    for size in SIZES:
        theirs, ours = (statistics.median(r[library][size] for r in rounds) for library in ("torch", "teletensor"))
        table.add_row(f"{size:,}", f"{theirs * 1e6:,.0f}", f"{ours * 1e6:,.0f}", f"{theirs / ours:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
