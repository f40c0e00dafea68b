"""`python -m tests.conformance.graphs [--python PYTHON]`: compares the graphs of torch.export with PyTorch's for over 80 modules.

Prints, for the graphs of export() and of run_decompositions(), the share of operators with PyTorch's names, and whether each
package computes the other's .pt2 files.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.peer import ROOT, add_option, environment, python_of

PACKAGES = ("teletensor", "torch")


def run(python: str, package: str, step: str, folder: Path) -> dict[str, Any]:
    command = [python, "-m", "tests.conformance.graphs.worker", package, step, str(folder)]
    output = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    line = next((line for line in output.stdout.splitlines() if line.startswith("RESULT")), None)
    if line is None:
        raise SystemExit(f"{package}: {output.stderr[-2000:]}")
    return json.loads(line.removeprefix("RESULT"))


def shared(ours: list[str], theirs: list[str]) -> int:
    """How many operators occur in both graphs."""
    return sum((collections.Counter(ours) & collections.Counter(theirs)).values())


def report(ours: dict[str, Any], theirs: dict[str, Any], suffix: str) -> None:
    names = [n for n in theirs if n.endswith(suffix) and not n.endswith("error") and (suffix or " " not in n)]
    total = equal = identical = 0
    for name in names:
        a, b = ours.get(name, []), theirs[name]
        same = shared(a, b)
        total, equal, identical = total + max(len(a), len(b)), equal + same, identical + (sorted(a) == sorted(b))
        if sorted(a) != sorted(b):
            print(f"  {name}: {same} of {max(len(a), len(b))}; only here {sorted(set(a) - set(b))}, only there {sorted(set(b) - set(a))}")
    print(f"{suffix or 'export'}: {equal} of {total} operators ({equal / total:.0%}), {identical} of {len(names)} graphs equal")


def main() -> int:
    """Runs the comparison; returns 1 if a package computes a file of the other differently."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    args = parser.parse_args()
    pythons = {"teletensor": sys.executable, "torch": python_of(args)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {p: run(pythons[p], p, "write", folder) for p in PACKAGES}
        for suffix in ("", "functional"):
            report(found["teletensor"], found["torch"], suffix)
        for package in PACKAGES:
            for key, error in found[package].items():
                if key.endswith("error"):
                    print(f"{package}: {key}: {error}")
        differ = 0
        for package, other in zip(PACKAGES, reversed(PACKAGES)):
            results = run(pythons[package], package, other, folder)
            equal = sum(r == "equal" for r in results.values())
            differ += len(results) - equal
            print(f"files of {other} in {package}: {equal} of {len(results)} give equal results")
            for key, error in results.items():
                if error != "equal":
                    print(f"  {key}: {error}")
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main())
