#!/usr/bin/env python3
"""Compares the lines of product code per top-level folder with deploy/size_budget.txt; fails if a folder has more.

Usage: ``deploy/check_size.py``

The lines are those that cloc counts in tracked files: without blank lines, comments, docstrings and Markdown. A commit
that raises a budget says why; one that makes a folder smaller lowers it.
"""

from __future__ import annotations

import collections
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "deploy/size_budget.txt"


def budgets() -> dict[str, int]:
    """Returns the permitted lines by folder."""
    lines = (line.split() for line in BUDGET.read_text().splitlines() if not line.startswith("#"))
    return {folder: int(number) for folder, number in lines}


def count(folders: list[str]) -> dict[str, int]:
    """Returns the lines of code in each folder."""
    files = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True).stdout
    command = ["cloc", "--quiet", "--json", "--by-file", "--exclude-lang=Markdown", "--list-file=-"]
    counted = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, input=files).stdout)
    lines: dict[str, int] = collections.Counter()
    for path, file in counted.items():
        if path not in ("header", "SUM"):
            lines[path.split("/")[0]] += file["code"]
    return lines


def main() -> int:
    """Prints a table of the folders."""
    permitted = budgets()
    lines = count(list(permitted))
    for folder, most in permitted.items():
        print(f"{folder:12} {lines[folder]:8,} of {most:8,} lines{'  too many' if lines[folder] > most else ''}")
    if over := [folder for folder, most in permitted.items() if lines[folder] > most]:
        print(f"size: more lines than {BUDGET.relative_to(ROOT)} permits: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
