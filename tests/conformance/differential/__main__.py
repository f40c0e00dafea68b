"""`python -m tests.conformance.differential`: runs the comparison in worker processes, prints and writes the table.

An interrupted run continues where it stopped, as long as no source has changed. Exits with 1 if a difference has no reason.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .. import peer
from .page import differences, page, summary
from .pool import Journal, Limits, Row, Worker, fingerprint, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.conformance.differential", description=__doc__)
    parser.add_argument("--names", nargs="*", help="patterns of operators and classes (default: all)")
    parser.add_argument("--samples", type=int, default=4, help="base calls per operator, dtype and form (default: 4)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--call-limit", type=float, default=120, help="seconds for one call (default: 120)")
    parser.add_argument("--limit", type=float, default=600, help="seconds for all calls of one name (default: 600)")
    parser.add_argument("--journal", type=Path, default=peer.BUILD / "differential.jsonl", help="file of finished rows")
    parser.add_argument("--keep", action="store_true", help="use rows of the journal although sources have changed")
    parser.add_argument("--partial", action="store_true", help="write what the journal has, without further calls")
    parser.add_argument("--page", type=Path, help="output file for the table as Markdown")
    peer.add_option(parser)
    args = parser.parse_args()
    console, limits, start = Console(), Limits(args.call_limit, args.limit), time.monotonic()
    python = peer.python_of(args)
    workers = [Worker(python, limits) for _ in range(args.workers)]
    known, version = workers[0].names()
    names = [n for n in known if not args.names or any(fnmatch.fnmatchcase(n, p) for p in args.names)]
    journal = Journal(args.journal, fingerprint(args.samples), args.keep)
    is_resumed = any(n in journal.rows for n in names)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("comparing with PyTorch", total=len(names), completed=sum(n in journal.rows for n in names))

        def done(row: Row) -> None:
            progress.update(task, advance=1, description=f"after {row.name}"[:50])

        run([] if args.partial else names, args.samples, workers, journal, done)
    rows = [journal.rows[name] for name in names if name in journal.rows]
    found, stale = differences(rows)
    for d in found:
        if not d.why:
            console.print(f"{d.path} {d.argument}: {d.text}", markup=False, soft_wrap=True)
    if not args.names:
        for entry in stale:
            console.print(f"listed reason that no longer applies: {entry['names']}: {entry['why']}", markup=False, soft_wrap=True)
    seconds = f"{time.monotonic() - start:.0f} s{' (continued)' if is_resumed else ''}"
    console.print(f"{summary(rows, found)}; {seconds}", markup=False, soft_wrap=True)
    if args.page:
        args.page.write_text(page(rows, version.split("+")[0], [n for n in names if n not in journal.rows]))
    return int(any(not d.why for d in found))


if __name__ == "__main__":
    sys.exit(main())
