"""Writes the keys that PyTorch's profiler lists for key_cases.py to keys.json; or compares them with those here.

.venv-peers/bin/python -m tests.python.profiler.record_keys
PYTHONPATH=build/python .venv/bin/python -m tests.python.profiler.record_keys --compare
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .key_cases import CASES, NODES, counts, nodes

KEYS = Path(__file__).with_name("keys.json")


def record() -> None:
    """Writes the keys of PyTorch."""
    import torch
    import torch.profiler

    found = {name: counts(torch, case) for name, case in CASES.items()}
    found_nodes = {name: nodes(torch, function) for name, function in NODES.items()}
    KEYS.write_text(json.dumps({"cases": found, "nodes": found_nodes}, indent=0, sort_keys=True) + "\n")


def compare() -> None:
    """Prints how many of PyTorch's keys are listed, and the differences."""
    import teletensor as torch
    import teletensor.profiler

    for name, expected in json.loads(KEYS.read_text())["cases"].items():
        found = counts(torch, CASES[name])
        print(f"{name}: {len(found.keys() & expected.keys())} of {len(expected)} keys")
        print("  other count:", {k: (found[k], n) for k, n in expected.items() if k in found and found[k] != n})
        print("  missing:", " ".join(sorted(expected.keys() - found.keys())))
        print("  only here:", " ".join(sorted(found.keys() - expected.keys())))


if __name__ == "__main__":
    compare() if "--compare" in sys.argv else record()
