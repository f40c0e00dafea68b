"""`python -m tests.conformance.op_db`: runs op_db in worker processes, prints a table by operator, writes it as
JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import peer
from ..rows import COUNTS, Worker, run
from .differences import absence, reasons

MODULE = "tests.conformance.op_db.worker"


def judge(row: dict) -> dict:
    """Adds a summary to a worker's row: counts, reasons, and whether the operator matches PyTorch's."""
    checks = row.get("checks", [])
    counts = {kind: sum(check[kind] for check in checks) for kind in COUNTS}
    reasons = {why for check in checks for why in check["reasons"]}
    is_missing = bool(row.get("missing")) and not checks
    if is_missing:
        reasons |= {absence(row["name"])} - {""}
    if "broken" in row:
        state = "broken"
    elif is_missing:
        state = "missing"
    elif counts["failed"]:
        state = "failed"
    elif any(counts.values()):
        state = "passed"
    else:
        state = "without_samples"
        reasons.add("PyTorch has no CPU samples")
    return {**row, **counts, "state": state, "reasons": sorted(reasons)}


def show(console: Console, rows: list[dict], verbose: bool) -> None:
    """Prints the differences and the totals."""
    table = Table(title="op_db: differences", title_justify="left")
    for column in ("operator", "passed", "failed", "on purpose", "skipped", "why"):
        table.add_column(column, justify="right" if column not in ("operator", "why") else "left", overflow="fold")
    for row in rows:
        why = list(row["reasons"])
        if row["state"] == "broken":
            why.append(row["broken"])
        why += row.get("missing", [])[:1]
        why += [f"{c['check']} {c['dtype']}: {c['why'][0]}" for c in row.get("checks", []) if c["failed"]][: 100 if verbose else 2]
        why += [f"missing: {', '.join(row['missing_forms'])}"] if row.get("missing_forms") else []
        if row["state"] != "passed" or why:
            counts = [str(row[k]) for k in COUNTS]
            table.add_row(row["name"], *counts, "\n".join(why))
    console.print(table, markup=False)
    console.print(summary(rows), markup=False)


def summary(rows: list[dict]) -> str:
    """The totals, in one line."""
    states = {state: sum(r["state"] == state for r in rows) for state in ("passed", "failed", "broken", "missing", "without_samples")}
    samples = {k: sum(r[k] for r in rows) for k in COUNTS}
    compared = states["passed"] + states["failed"] + states["broken"]
    return (
        f"{len(rows)} operators: {compared} compared, {states['passed']} as PyTorch, {states['failed']} differ, "
        f"{states['broken']} broken, {states['missing']} missing, {states['without_samples']} without samples; "
        f"comparisons: {samples['passed']} passed, {samples['failed']} failed, {samples['on_purpose']} differ on purpose, "
        f"{samples['skipped']} skipped"
    )


def page(rows: list[dict], version: str) -> str:
    """The table as Markdown: operators that differ on purpose or are missing, with the reason."""
    lines = ["# PyTorch's operator samples, compared with PyTorch", ""]
    lines += [f"`make op-db` runs PyTorch {version}'s `op_db`, also its samples of sparse layouts, through both packages and writes"]
    lines += ["this page.", ""]
    lines += [summary(rows) + ".", "", "| operator | passed | failed | on purpose | skipped | why |", "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        why = [*row["reasons"], *row.get("missing", [])[:1], *([row["broken"]] if "broken" in row else [])]
        why += [f"missing: {', '.join(row['missing_forms'])}"] if row.get("missing_forms") else []
        why += ["not explained"] if row["failed"] else []
        if row["state"] != "passed" or why:
            counts = [str(row[kind]) for kind in COUNTS]
            lines.append(f"| {row['name']} | {' | '.join(counts)} | {'; '.join(why)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.conformance.op_db", description=__doc__)
    parser.add_argument("--names", nargs="*", help="operator names, or a file with a name at the start of each line (default: all)")
    parser.add_argument("--json", type=Path, help="output file for the table")
    parser.add_argument("--page", type=Path, help="output file for the table as Markdown")
    parser.add_argument("--samples", type=int, default=60, help="maximum number per operator and dtype (default: 60)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one operator (default: 300)")
    parser.add_argument("--verbose", action="store_true", help="print every check that differs")
    peer.add_option(parser)
    args = parser.parse_args()
    console = Console()
    python = peer.python_of(args)
    asking = Worker(python, args.limit, MODULE)
    about = asking.ask("?", 0)
    asking.stop()
    names = about["names"]
    if args.names:
        asked = args.names
        if len(asked) == 1 and Path(asked[0]).is_file():
            lines = Path(asked[0]).read_text().splitlines()
            asked = [line.split("|")[0].strip() for line in lines if line and not line.startswith("#")]
        names = [name for name in names if name in set(asked)]
    rows = run(names, args.samples, lambda: Worker(python, args.limit, MODULE), args.workers, judge, console)
    show(console, rows, args.verbose)
    if not args.names:
        for stale in set(reasons()) - {why for row in rows for why in row["reasons"]}:
            console.print(f"listed difference that no longer occurs: {stale}", markup=False)
    if args.json:
        args.json.write_text(json.dumps({"torch": about["version"], "summary": summary(rows), "operators": rows}, indent=1))
    if args.page:
        args.page.write_text(page(rows, about["version"].split("+")[0]))
    return int(any(r["state"] in ("failed", "broken") for r in rows))


if __name__ == "__main__":
    sys.exit(main())
