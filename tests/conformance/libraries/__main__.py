"""`python -m tests.conformance.libraries [--only NAME...]`: runs the programs with both libraries and compares.

Creates the virtual environments .venv-libraries, with the libraries and without PyTorch, and .venv-peers, with PyTorch.
Updates the libraries' rows of docs/conformance.md. Exits with 1 if a program differs without a listed reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import environment
from .environment import ROOT
from .page import PAGE, Row, write
from .reasons import REASONS
from .values import difference

# In order of dependency. Value: the library's name on PyPI.
LIBRARIES = {
    "einops": "einops", "safetensors": "safetensors", "torchmetrics": "torchmetrics", "torchvision": "torchvision", "timm": "timm",
    "transformers": "transformers", "accelerate": "accelerate", "peft": "peft", "sentence_transformers": "sentence-transformers",
    "lightning": "lightning", "gpytorch": "gpytorch", "pyro": "pyro-ppl", "stable_baselines3": "stable-baselines3",
    "torch_geometric": "torch_geometric",
}  # fmt: skip
TOLERANCE = 2e-4  # relative to a number, or to a tensor's largest element
LIMIT = 900  # seconds that a program may take


def _values(name: str, library: str, folder: str) -> dict:
    """Runs a program; returns its values."""
    file = Path(folder, f"{name}.{library}.json")
    paths = environment.paths(library)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "HF_HUB_OFFLINE": "1"}
    variables["TELETENSOR_DAEMON"] = str(ROOT / "build/bin/teletensord")
    command = [environment.interpreter(library), "-m", f"{__package__}.worker", name, library, str(file)]
    log = ROOT / f"build/libraries-{name}-{library}.log"
    try:
        with log.open("w") as output:
            subprocess.run(command, cwd=ROOT, env=variables, stdout=output, stderr=output, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"import": {"error": f"the program took more than {LIMIT} s"}}
    return json.loads(file.read_text()) if file.exists() else {"import": {"error": log.read_text()[-2000:]}}


def compare(name: str, actual: dict, expected: dict) -> Row:
    """Compares the values of a program's functions."""
    row = Row(name, environment.version_of(LIBRARIES[name]))
    for function, reference in expected.items():
        kind = function.rpartition("_")[2]
        if "error" in reference:
            row.add(kind, function, f"PyTorch failed: {reference['error'].strip().splitlines()[-1]}")
            continue
        got = actual.get(function, {"error": "not run: the import failed"})
        if "error" in got:
            row.add(kind, function, got["error"].strip().splitlines()[-1], REASONS.get((name, function)))
        else:
            row.add(kind, function, difference(got["value"], reference["value"], TOLERANCE), REASONS.get((name, function)))
    return row


def main() -> int:
    """Runs the selected programs; returns 1 if one differs without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES), help="run only these programs")
    options = parser.parse_args()
    environment.prepare()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            rows.append(compare(name, _values(name, "teletensor", folder), _values(name, "torch", folder)))
            print(f"{name}: {rows[-1].passed} of {rows[-1].count} as PyTorch", flush=True)
    table = Table("library", "version", *Row.KINDS, title="programs of other libraries")
    for row in rows:
        table.add_row(row.name, row.version, *(row.cell(kind) for kind in Row.KINDS))
    Console().print(table)
    unexplained = [f"{row.name} {function}: {what}" for row in rows for function, what, reason in row.failures if not reason]
    print(*unexplained, sep="\n")
    write(PAGE, rows)
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
