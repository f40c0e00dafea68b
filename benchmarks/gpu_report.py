"""`python -m benchmarks.gpu_report [--peer python3]`: prints a table of teletensor and PyTorch on this GPU."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "gpu.py"
# Target ratios: teletensor's rate divided by PyTorch's, or PyTorch's time divided by teletensor's.
TARGETS = {"matmul 8192 bfloat16": 0.97, "MLP 784-512-256-10, batch 128, Adam step": 1.5,
           "GPT block 1024, 8 x 1024 tokens, bfloat16 step": 1.0,
           "NumPy to GPU 1 GiB, pinned": 0.7}  # fmt: skip


def measure(interpreter: str, package: str) -> dict[str, dict]:
    environment = {**os.environ, "BENCH_TORCH": package}
    if package == "torch":  # must not affect the peer's interpreter
        for name in ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH"):
            environment.pop(name, None)
    done = subprocess.run([interpreter, str(SCRIPT)], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        raise SystemExit(f"gpu_report: {package} failed under {interpreter}")
    return {row["what"]: row for row in json.loads(done.stdout.splitlines()[-1])}


def table(ours: list[dict], theirs: list[dict]) -> str:
    lines = ["| measurement | teletensor | PyTorch | unit | ratio | target ratio |", "|---|---|---|---|---|---|"]
    for what, row in ours[0].items():
        own = statistics.median(run[what]["value"] for run in ours)
        peer = statistics.median(run[what]["value"] for run in theirs) if theirs and what in theirs[0] else None
        ratio = "" if peer is None else f"{(peer / own if row['unit'] == 'us' else own / peer):.2f}"
        peer_text = "" if peer is None else f"{peer:.1f}"
        lines.append(f"| {what} | {own:.1f} | {peer_text} | {row['unit']} | {ratio} | {TARGETS.get(what, '')} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python interpreter with PyTorch; default: measure teletensor only")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        ours.append(measure(sys.executable, "teletensor"))
        if arguments.peer:
            theirs.append(measure(arguments.peer, "torch"))
    print(table(ours, theirs))


if __name__ == "__main__":
    main()
