"""`python -m tests.conformance.module_db`: runs module_db and optim_db in worker processes, prints and writes tables."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import peer
from ..rows import COUNTS, Worker, run
from .differences import reasons

KINDS = (("modules", "nn."), ("optimizers", "optim."))
EXPLANATION = """`make module-db` runs PyTorch {version}'s `module_db` and `optim_db` through both packages and writes this page.

A module is compared on every sample, dtype and mode: result, buffers, gradients of inputs and parameters (also with
non-contiguous inputs), text, attributes, state dicts loaded in both directions, casts, construction on "meta" and
`to_empty`, deep copies, pickling, hooks of forward, backward, `state_dict` and `load_state_dict`, and the errors for invalid
arguments. An optimizer is compared on every sample, with `foreach`, `fused`, `capturable` and `differentiable`, in float32,
float64 and complex64: parameters and state after each of six steps, exchange of state dicts, parameter groups, named
parameters, hooks, copies, text, schedulers, and errors. Reasons are listed in
`tests/conformance/module_db/differences.yaml`.
"""


def judge(row: dict) -> dict:
    """Adds counts, reasons and the state to a worker's row."""
    checks = row.get("checks", [])
    counts = {kind: sum(check[kind] for check in checks) for kind in COUNTS}
    bad = "broken" in row or row.get("missing") or counts["failed"]
    why = sorted({reason for check in checks for reason in check["reasons"]})
    return {**row, **counts, "inputs": row.get("inputs", 0), "state": "failed" if bad else "passed", "reasons": why}


def summary(rows: list[dict], what: str) -> str:
    """The totals, in one line."""
    samples = {k: sum(r[k] for r in rows) for k in COUNTS}
    return (
        f"{len(rows)} {what}, {sum(r['inputs'] for r in rows)} inputs: {sum(r['state'] == 'passed' for r in rows)} as PyTorch's, "
        f"{sum(r['state'] == 'failed' for r in rows)} differ; comparisons: {samples['passed']} passed, {samples['failed']} failed, "
        f"{samples['on_purpose']} differ for a reason, {samples['skipped']} skipped"
    )


def explanations(row: dict) -> list[str]:
    """Reasons, and differences without one."""
    found = [*row["reasons"], *row.get("missing", []), *([row["broken"]] if "broken" in row else [])]
    return found + (["not explained"] if row["failed"] else [])


def show(console: Console, rows: list[dict], verbose: bool) -> None:
    """Prints the differences and the totals."""
    table = Table(title="module_db: differences", title_justify="left")
    for column in ("name", "inputs", *COUNTS, "why"):
        table.add_column(column, justify="left" if column in ("name", "why") else "right", overflow="fold")
    for row in rows:
        why = explanations(row)
        why += [f"{c['check']} {c['dtype']}: {c['why'][0]}" for c in row.get("checks", []) if c["failed"]][: 100 if verbose else 2]
        if why:
            table.add_row(row["name"], str(row["inputs"]), *(str(row[k]) for k in COUNTS), "\n".join(why))
    console.print(table, markup=False)
    for what, prefix in KINDS:
        if chosen := [r for r in rows if r["name"].startswith(prefix)]:
            console.print(summary(chosen, what), markup=False)


def page(rows: list[dict], version: str) -> str:
    """The tables as Markdown."""
    lines = ["# PyTorch's module and optimizer samples, compared with PyTorch", "", EXPLANATION.format(version=version)]
    for what, prefix in KINDS:
        chosen = [row for row in rows if row["name"].startswith(prefix)]
        lines += [f"## {what.capitalize()}", "", summary(chosen, what) + ".", ""]
        lines += [f"| {what[:-1]} | inputs | passed | failed | for a reason | skipped | why |", "|---|---:|---:|---:|---:|---:|---|"]
        for row in chosen:
            counts = " | ".join(str(row[kind]) for kind in COUNTS)
            lines.append(f"| {row['name']} | {row['inputs']} | {counts} | {'; '.join(explanations(row))} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Runs the comparison; returns 1 if a difference has no reason."""
    parser = argparse.ArgumentParser(prog="tests.conformance.module_db", description=__doc__)
    parser.add_argument("--names", nargs="*", help='such as "nn.Linear optim.Adam" (default: all)')
    parser.add_argument("--json", type=Path, help="output file for the table")
    parser.add_argument("--page", type=Path, help="output file for the table as Markdown")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one module (default: 900)")
    parser.add_argument("--verbose", action="store_true", help="print every check that differs")
    peer.add_option(parser)
    args = parser.parse_args()
    console, python = Console(), peer.python_of(args)
    make = lambda: Worker(python, args.limit, "tests.conformance.module_db.worker")  # noqa: E731
    first = make()
    about = first.ask("?", 0)
    first.stop()
    names = [name for name in about["names"] if not args.names or name in args.names]
    rows = run(names, 0, make, args.workers, judge, console)
    show(console, rows, args.verbose)
    if not args.names:
        for stale in set(reasons()) - {why for row in rows for why in row["reasons"]}:
            console.print(f"listed difference that no longer occurs: {stale}", markup=False)
    if args.json:
        args.json.write_text(json.dumps({"torch": about["version"], "rows": rows}, indent=1))
    if args.page:
        args.page.write_text(page(rows, about["version"].split("+")[0]))
    return int(any(row["state"] == "failed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
