"""`python -m tests.conformance.libraries [--only NAME...] [--resume]`: runs the programs with both libraries and compares.

Creates the virtual environments .venv-libraries, with the libraries and without PyTorch, and .venv-peers, with PyTorch.
Writes a library's row of docs/conformance.md when its programs have run, so that a run may be interrupted; with --resume
the next run skips the libraries that ran since teletensor was changed. PyTorch's values are kept in build/libraries
until a program changes. Exits with 1 if a program differs without a listed reason.
"""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.table import Table

from . import environment, execution
from .page import PAGE, Row, write
from .reasons import REASONS
from .values import difference

# In order of dependency. Value: the library's name on PyPI.
LIBRARIES = {
    "einops": "einops", "safetensors": "safetensors", "torchmetrics": "torchmetrics", "torchvision": "torchvision", "timm": "timm",
    "transformers": "transformers", "accelerate": "accelerate", "peft": "peft", "sentence_transformers": "sentence-transformers",
    "lightning": "lightning", "gpytorch": "gpytorch", "pyro": "pyro-ppl", "stable_baselines3": "stable-baselines3",
    "torch_geometric": "torch_geometric", "fvcore": "fvcore", "torchdiffeq": "torchdiffeq", "e3nn": "e3nn", "kornia": "kornia",
    "botorch": "botorch", "open_clip": "open_clip_torch", "diffusers": "diffusers", "captum": "captum", "skorch": "skorch",
    "pytorch_metric_learning": "pytorch-metric-learning",
    "ignite": "pytorch-ignite", "x_transformers": "x-transformers", "vit_pytorch": "vit-pytorch", "torchsde": "torchsde", "zuko": "zuko",
    "opacus": "opacus", "geoopt": "geoopt", "torchaudio": "torchaudio", "fastai": "fastai", "monai": "monai", "nflows": "nflows",
    "snntorch": "snntorch", "schedulefree": "schedulefree", "torchcde": "torchcde", "entmax": "entmax",
}  # fmt: skip
TOLERANCE = 2e-4  # relative to a number, or to a tensor's largest element


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


def run(names: list[str], resume: bool, console: Console) -> list[Row]:
    """Runs programs and writes their rows to the page, one after the other."""
    rows = []
    for place, name in enumerate(names, 1):
        begin = time.monotonic()
        with console.status("") as status:

            def show(library: str, function: str, done: int) -> None:
                status.update(f"[{place}/{len(names)}] {name} with {library}: {done} functions done, {function}")

            expected = execution.reference(name, show)
            actual = execution.values(name, resume, show)
        rows.append(compare(name, actual, expected))
        write(PAGE, rows[-1:])
        seconds = time.monotonic() - begin
        console.print(f"[{place}/{len(names)}] {name}: {rows[-1].passed} of {rows[-1].count} as PyTorch, {seconds:.0f} s", markup=False)
    return rows


def main() -> int:
    """Runs the selected programs; returns 1 if one differs without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES), help="run only these programs")
    parser.add_argument("--resume", action="store_true", help="skip libraries that ran since teletensor was changed")
    options = parser.parse_args()
    environment.prepare()
    console = Console()
    rows = run(options.only, options.resume, console)
    table = Table("library", "version", *Row.KINDS, title="programs of other libraries")
    for row in rows:
        table.add_row(row.name, row.version, *(row.cell(kind) for kind in Row.KINDS))
    console.print(table)
    unexplained = [f"{row.name} {function}: {what}" for row in rows for function, what, reason in row.failures if not reason]
    print(*unexplained, sep="\n")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
