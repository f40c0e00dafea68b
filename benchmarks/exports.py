"""Time of torch.export.export and run_decompositions with dynamic sizes, beside PyTorch's.

python -m benchmarks.exports [--peers]
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from typing import Any

from .gpt import make_gpt
from .peers import interpreter, measured
from .vision import resnet18

ROUNDS = 3


def cases(torch: Any) -> dict[str, tuple[Any, tuple, Any]]:
    """The modules with their arguments and dynamic sizes."""
    batch, length = torch.export.Dim("batch", min=2), torch.export.Dim("length", min=2, max=64)
    return {
        "GPT of 4 blocks": (make_gpt(torch, 65), (torch.randint(0, 65, (3, 17)),), ({0: batch, 1: length},)),
        "ResNet-18": (resnet18(torch).eval(), (torch.randn(2, 3, 64, 64),), ({0: batch},)),
    }


def measure(package: str) -> dict[str, list[float]]:
    """Per module, the seconds of an export and of its decomposition."""
    torch = importlib.import_module(package)
    found = {}
    for name, (module, args, shapes) in cases(torch).items():
        rows = []
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            program = torch.export.export(module, args, dynamic_shapes=shapes)
            exported = time.perf_counter()
            program.run_decompositions()
            rows.append((exported - start, time.perf_counter() - exported))
        found[name] = [statistics.median(column) for column in zip(*rows[1:])]
    return found


def main() -> None:
    """Prints a table."""
    if "--peers" in sys.argv:
        interpreter()
    _, ours, theirs = measured(__doc__, "benchmarks.exports", measure)
    print("| module | call | seconds |" + (" PyTorch | ratio |" if theirs else ""))
    print("|---|---|---|" + ("---|---|" if theirs else ""))
    for name, row in ours.items():
        for i, call in enumerate(("export", "run_decompositions")):
            line = f"| {name} | {call} | {row[i]:.2f} |"
            print(line + (f" {theirs[name][i]:.2f} | {row[i] / theirs[name][i]:.2f} |" if theirs else ""))


if __name__ == "__main__":
    main()
