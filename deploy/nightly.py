"""Runs the checks that take too long for every change, one after another, and lists which failed: ``make nightly``.

``ONLY="op-db adversary"`` selects some. The output of each is in build/nightly/NAME.log. A check that fails does not stop
the others; the exit code is 1 if one did.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
# Targets of the Makefile.
CHECKS = ("differential", "op-db", "module-db", "signatures", "captures", "dist-cases", "adversary", "chaos", "skew-test", "fuzz-release")


def run(target: str, folder: Path) -> tuple[int, float, str]:
    """Makes a target: its exit code, seconds and the last line that it printed."""
    began = time.monotonic()
    log = folder / f"{target}.log"
    with log.open("w") as out:
        code = subprocess.run(["make", "--no-print-directory", target], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT).returncode
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if any(c.isalnum() for c in line)]
    return code, time.monotonic() - began, lines[-1] if lines else ""


def main() -> int:
    """Runs the selected checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"checks to run (default: all of {', '.join(CHECKS)})")
    checks = parser.parse_args().checks or CHECKS
    if unknown := sorted(set(checks) - set(CHECKS)):
        parser.error(f"expected checks of {', '.join(CHECKS)}; got {', '.join(unknown)}")
    folder = ROOT / "build/nightly"
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    table = Table("check", "result", "minutes", "last line")
    failed = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("nightly", total=len(checks))
        for name in checks:
            progress.update(task, description=name)
            code, seconds, last = run(name, folder)
            failed += code != 0
            result = "passed" if code == 0 else f"[red]failed ({code})[/red]"
            table.add_row(name, result, f"{seconds / 60:.1f}", last[:100])
            progress.advance(task)
    Console().print(table)
    return int(failed != 0)


if __name__ == "__main__":
    raise SystemExit(main())
