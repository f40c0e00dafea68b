"""`python -m benchmarks.upgrade`: how long clients wait while an engine is replaced (`teletensor upgrade`).

Starts an engine and one client process per session. Each session has half of its memory as tensors of 1 MiB and half as
views of one tensor; its client adds 1 to a number and reads it, again and again, while the engine is replaced. Prints the
pause that the engine reports, the longest wait of a client, and whether every tensor has the bits that it had and every
addition was executed once.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from teletensor import _C

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"


def client(address: str, mib: int) -> None:
    """Holds `mib` MiB in a session; prints "ready", and the results when its input ends."""
    import teletensor as torch

    torch.connect(address)
    tensors = [torch.randn(1 << 18) for _ in range(mib // 2)]
    whole = torch.randn(mib // 2 * (1 << 18))
    tensors += whole.split(1 << 20)

    def digest() -> float:
        return sum(each.double().abs().sum() for each in tensors).item()

    before, number, count, longest = digest(), torch.zeros(()), 0, 0.0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.001)[0]:
        start = time.monotonic()
        number.add_(1)
        number.item()
        longest = max(longest, time.monotonic() - start)
        count += 1
    print(json.dumps({"longest": longest, "intact": digest() == before, "once": number.item() == count}), flush=True)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--gib", type=float, default=4.0, help="of all sessions together")
    parser.add_argument("--client", nargs=2, metavar=("ADDRESS", "MIB"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client(options.client[0], int(options.client[1]))
    environment = {**os.environ, "PYTHONPATH": f"{BUILD / 'python'}{os.pathsep}{ROOT}"}
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/engine.sock"
        engine = subprocess.Popen([BUILD / "bin/teletensord", "--listen", address, "--no-auth", "--log-level", "warn"])
        while not Path(folder, "engine.sock").exists():
            time.sleep(0.02)
        mib = str(int(options.gib * 1024 / options.sessions))
        clients = []
        for _ in range(options.sessions):
            command = [sys.executable, "-m", "benchmarks.upgrade", "--client", address, mib]
            clients.append(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
                )
            )
        for each in clients:
            assert each.stdout.readline() == "ready\n"
        try:
            reply = json.loads(_C.Admin(address, deadline_seconds=300).upgrade(10, False))
            time.sleep(1)
            results = [json.loads(each.communicate("\n")[0]) for each in clients]
            os.kill(int(reply["pid"]), 15)
        finally:
            for process in (*clients, engine):
                process.terminate()
                process.wait()
    table = Table("figure", "value", title=f"{reply['sessions']} sessions, {int(reply['bytes']) / 2**30:.2f} GiB")
    table.add_row("pause that the engine reports, s", f"{float(reply['pause_seconds']):.2f}")
    table.add_row("longest wait of a client, s (target 5)", f"{max(each['longest'] for each in results):.2f}")
    table.add_row("sessions with all bits as before", str(sum(each["intact"] for each in results)))
    table.add_row("sessions with each addition executed once", str(sum(each["once"] for each in results)))
    Console().print(table)


if __name__ == "__main__":
    main()
