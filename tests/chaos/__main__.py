"""Causes faults of machines and networks during training runs, and checks what has to hold nevertheless.

Usage: ``make chaos`` or ``python -m tests.chaos [--only NAME] [--scale 10]``. Prints one row per fault: how often it
happened, and whether the weights are bit-identical to those of an undisturbed run, each instruction was executed exactly
once, and the engine returned what its sessions held. Exits with 1 if something did not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.chaos.engine import Engine, Training
from tests.chaos.faults import FAULTS, Rehearsal


def undisturbed(steps: int) -> str:
    """The digest of the weights of a run without faults."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder))
        try:
            result = Training(engine.address, steps).result()
        finally:
            complaint = engine.stop()
    if complaint or "reason" in result:
        raise RuntimeError(complaint or result["reason"])
    return result["digest"]


def rehearse(name: str, steps: int, digest: str, *, rounds: int = 0, seed: int = 1) -> tuple[str, list[str]]:
    """Causes one fault. Returns what happened, and the complaints."""
    function, usual = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Rehearsal(Path(folder), rounds or usual, steps, digest, seed)
        try:
            done = function(rehearsal)
        except (TimeoutError, OSError, RuntimeError) as error:
            done = ""
            rehearsal.complaints.append(str(error))
        return done, rehearsal.complaints


def main() -> int:
    """Causes the faults; returns 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cause the faults whose name contains this")
    parser.add_argument("--steps", type=int, default=300, help="training steps of each run (default: 300)")
    parser.add_argument("--scale", type=int, default=1, help="multiplies the numbers of faults and of steps (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random moments")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    names = [name for name in FAULTS if args.only in name]
    if not names:
        parser.error(f"expected a part of one of {', '.join(FAULTS)}, got {args.only!r}")
    steps = args.steps * args.scale
    table = Table("fault", "caused", "seconds", "verdict")
    bad = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("undisturbed", total=len(names))
        digest = undisturbed(steps)
        for name in names:
            progress.update(task, description=name)
            began = time.monotonic()
            done, complaints = rehearse(name, steps, digest, rounds=FAULTS[name][1] * args.scale, seed=args.seed)
            bad += bool(complaints)
            verdict = "[red]" + "\n".join(complaints).replace("[", r"\[") + "[/red]" if complaints else "ok"
            table.add_row(name, done, f"{time.monotonic() - began:.0f}", verdict)
            progress.advance(task)
    console.print(table)
    console.print(f"chaos: {len(names)} faults, {bad} with complaints")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
