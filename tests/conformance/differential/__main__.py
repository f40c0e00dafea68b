"""`python -m tests.conformance.differential`: runs the comparison in worker processes, prints and writes the table.

Exits with 1 if a difference has no reason.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import sys
from pathlib import Path

import yaml
from rich.console import Console

from benchmarks.peers import interpreter

from ..op_db.__main__ import PACKAGES, Worker

MODULE = "tests.conformance.differential.worker"
_REASONS = yaml.safe_load(Path(__file__).with_name("reasons.yaml").read_text())

PAGE = """# Calls with moved arguments, compared with PyTorch

`make differential` calls public functions and classes in PyTorch {version} and in teletensor, with each argument moved from
its default and with all arguments by keyword and by position. It compares values, dtypes, sizes, `requires_grad`, the
effect on arguments and exception types, and writes this page.

{summary}.

| name | argument | difference | calls | why |
|---|---|---|---:|---|
"""


def reason(name: str, argument: str, text: str) -> str:
    """The reason for a difference; empty if none is listed."""
    for entry in _REASONS:
        names = entry["names"] if isinstance(entry["names"], list) else [entry["names"]]
        is_named = any(fnmatch.fnmatchcase(name.removeprefix("torch."), n) for n in names)
        if is_named and fnmatch.fnmatchcase(argument, entry.get("argument", "*")) and re.search(entry.get("saying", ""), text):
            return entry["why"]
    return ""


def differences(rows: list[dict]) -> list[tuple[str, str, str, int, str]]:
    """(name, argument, text, number of calls, reason) of every difference."""
    found = []
    for row in rows:
        if "broken" in row:
            found.append((row["name"], "", row["broken"], 1, reason(row["name"], "", row["broken"])))
        for path, argument, *texts, count in row.get("found", ()):
            found.append((path, argument, texts[0], count, reason(path, argument, texts[0])))
    return found


def summary(rows: list[dict], found: list) -> str:
    """The totals, in one line."""
    counts = {kind: sum(row.get("counts", {}).get(kind, 0) for row in rows) for kind in ("passed", "failed", "skipped", "missing")}
    unexplained = sum(not why for *_, why in found)
    overloads = {overload for row in rows for overload in row.get("called", ())}
    return (
        f"{len(rows)} operators and classes, {len(overloads)} overloads, {counts['passed'] + counts['failed']} calls compared: "
        f"{counts['passed']} as in PyTorch, "
        f"{counts['failed']} differ ({len(found)} pairs of function and argument, {unexplained} not explained); {counts['skipped']} calls "
        f"have no counterpart, {counts['missing']} are of absent names"
    )


def page(rows: list[dict], version: str) -> str:
    """The table of differences as Markdown."""
    found = differences(rows)
    lines = []
    for name, argument, text, count, why in found:
        shown = text.replace("|", "\\|").replace("\n", " ")[:160]
        lines.append(f"| `{name}` | `{argument}` | {shown} | {count} | {why or 'not explained'} |")
    return PAGE.format(version=version, summary=summary(rows, found)) + "".join(line + "\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.conformance.differential", description=__doc__)
    parser.add_argument("--names", nargs="*", help="operators and classes (default: all)")
    parser.add_argument("--samples", type=int, default=4, help="base calls per operator, dtype and form (default: 4)")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one operator (default: 300)")
    parser.add_argument("--json", type=Path, help="output file for all rows")
    parser.add_argument("--page", type=Path, help="output file for the table as Markdown")
    parser.add_argument("--python", help="an interpreter with PyTorch and the packages of its tests")
    args = parser.parse_args()
    console = Console()
    worker = Worker(args.python or interpreter(*PACKAGES), args.limit, MODULE)
    about = worker.ask("?", 0)
    rows = []
    with console.status("comparing with PyTorch"):
        for name in args.names or about["names"]:
            rows.append(worker.ask(name, args.samples))
            if args.json:
                args.json.write_text(json.dumps(rows))
    worker.stop()
    found = differences(rows)
    for name, argument, text, count, why in found:
        if not why:
            console.print(f"{name} {argument} ({count}): {text}", markup=False)
    console.print(summary(rows, found), markup=False)
    if args.page:
        args.page.write_text(page(rows, about["version"].split("+")[0]))
    return int(any(not why for *_, why in found))


if __name__ == "__main__":
    sys.exit(main())
