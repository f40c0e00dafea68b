"""`python -m tests.conformance.examples --checkout FOLDER [--nanogpt FOLDER] [--only TEXT...]`

Runs PyTorch's example programs for torch.distributed (a checkout of github.com/pytorch/examples) and nanoGPT's training
(github.com/karpathy/nanoGPT) with teletensor and with PyTorch, which is installed into .venv-peers, on CPUs, and compares
the losses of every backward pass on every rank, and the printed ones. `programs.py` lists the programs, `site/preparation.py`
what both packages change. Writes the rows of docs/conformance.md; with --only the other rows are kept. The output of the
programs is in build/examples. Exits with 1 if a program fails or its losses differ.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import sections
from ..peer import BUILD, ROOT, add_option, python_of
from .execution import Outcome, run
from .programs import NANOGPT, PROGRAMS, Program

PAGE = ROOT / "docs/conformance.md"
HEADER = """## Example programs of torch.distributed

`make dist-examples CHECKOUT=folder NANOGPT=folder` runs the programs in `distributed/` of PyTorch's examples
(github.com/pytorch/examples) and nanoGPT's training (github.com/karpathy/nanoGPT) with teletensor and with PyTorch 2.15, on
CPUs, and compares the loss of every backward pass on every rank, and the printed losses. The programs are unchanged; both
packages present CPUs as accelerators to them and draw random numbers with NumPy. nanoGPT's script, which requires GPUs for
several ranks, has the lines changed that `tests/conformance/examples/programs.py` shows.

| program | losses | result | largest relative difference |
|---|---|---|---|
"""
FOLDER = BUILD / "examples"
PACKAGES = ("hydra-core", "boto3", "fsspec", "gymnasium", "numpy")  # of programs
VENV = ROOT / ".venv-examples"


def packages() -> str:
    """The folder with the packages that programs need besides PyTorch, installed on first use."""
    python = VENV / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return str(next((VENV / "lib").glob("python3*")) / "site-packages")


def difference(actual: Outcome, expected: Outcome, compared: int | None) -> tuple[float, str]:
    """The largest relative difference, and what differs in form, or ""."""
    shapes = [len(sequence) for sequence in actual.losses], [len(sequence) for sequence in expected.losses]
    if shapes[0] != shapes[1]:
        return float("inf"), f"{shapes[0]} losses by process, PyTorch has {shapes[1]}"
    if len(actual.printed) != len(expected.printed):
        return float("inf"), f"{len(actual.printed)} printed losses, PyTorch prints {len(expected.printed)}"
    pairs = [pair for a, e in zip(actual.losses, expected.losses) for pair in zip(a[:compared], e[:compared])]
    pairs += zip(actual.printed, expected.printed) if compared is None else ()
    return max((abs(a - e) / max(abs(e), 1e-3) for a, e in pairs), default=0.0), ""


def judge(program: Program, actual: Outcome, expected: Outcome) -> tuple[str, str, str, bool]:
    """The number of losses, the result, the difference, and whether the program passed."""
    if expected.error:
        return "", f"PyTorch: {expected.error}", "", False
    if actual.error:
        return "", f"failed: {actual.error}", "", False
    largest, form = difference(actual, expected, program.compared)
    count = str(sum(map(len, actual.losses)))
    if form or not largest <= program.tolerance:
        return count, f"differs: {form}" if form else "differs", f"{largest:.1e}", False
    result = "as PyTorch"
    if program.compared is not None:
        result += f" (the first {program.compared} of each process; the others {program.others})"
    return count, result, f"{largest:.0e}" if largest else "0", True


def main() -> int:
    """Runs the programs."""
    parser = argparse.ArgumentParser(prog="tests.conformance.examples", description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of github.com/pytorch/examples")
    parser.add_argument("--nanogpt", type=Path, help="a checkout of github.com/karpathy/nanoGPT")
    parser.add_argument("--only", nargs="+", help="run the programs whose names contain one of these texts")
    parser.add_argument("--packages", help=f"a folder with {', '.join(PACKAGES)} (default: {VENV.name})")
    add_option(parser)
    options = parser.parse_args()
    python, more = python_of(options, "numpy"), options.packages or packages()
    checkouts = {"examples": options.checkout.resolve()}
    if options.nanogpt:
        checkouts[NANOGPT] = options.nanogpt.resolve()
    FOLDER.mkdir(parents=True, exist_ok=True)
    console, rows, failed = Console(), [], False
    for program in PROGRAMS:
        if options.only and not any(text in program.name for text in options.only):
            continue
        reason = program.reason or ("" if program.folder != NANOGPT or options.nanogpt else "--nanogpt is not given")
        if reason:
            rows.append((program.name, "", f"not run: {reason}", ""))
            continue
        name = "".join(c if c.isalnum() else "-" for c in program.name)
        outcomes = [run(program, package, python, checkouts, more, FOLDER / f"{name}.{package}.log") for package in ("teletensor", "torch")]
        count, result, largest, passed = judge(program, *outcomes)
        failed = failed or not passed
        rows.append((program.name, count, result, largest))
        times = " and ".join(f"{outcome.seconds:.3f} s" for outcome in outcomes)
        console.print(f"{program.name}: {result}, {count} losses, difference {largest or '-'}, {times} per loss", markup=False)
    table = Table("program", "losses", "result", "largest relative difference", title="example programs of torch.distributed")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if failed:
        console.print(f"{PAGE.name} was not changed, because a program failed; its output is in {FOLDER}")
    else:
        sections.write(PAGE, HEADER, [f"| {' | '.join(row)} |" for row in rows], [program.name for program in PROGRAMS])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
