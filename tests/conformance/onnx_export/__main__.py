"""Exports a call of each operator of core ATen, compares onnxruntime's values, and writes the table in docs/onnx.md.

python -m tests.conformance.onnx_export [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import teletensor

from . import coverage

PAGE = Path(__file__).resolve().parents[3] / "docs" / "onnx.md"
START, END = "<!-- core ATen: written by python -m tests.conformance.onnx_export -->", "<!-- end of core ATen -->"


def table() -> tuple[str, list[str]]:
    """The text between the markers, and the operators without a row or a reason."""
    good, other, unknown = [], [], []
    for name, exports, detail in coverage.outcomes(teletensor):
        if exports:
            good.append(name)
        else:
            other.append(f"| `{name}` | {detail} |")
            if detail == "no row":
                unknown.append(name)
    lines = [
        f"{len(good)} of {len(good) + len(other)} operators export in opsets 18 and 23, and onnxruntime computes the same values.", "",
        "| not exported | why |", "|---|---|", *other,
    ]  # fmt: skip
    return "\n".join(lines), unknown


def main() -> int:
    """Writes the table; with --check, fails if the page has another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text, unknown = table()
    print(text)
    if unknown:
        print(f"operators without a row and without a reason: {unknown}")
        return 1
    page = PAGE.read_text()
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    new = f"{before}{START}\n{text}\n{END}{after}"
    if options.check:
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
