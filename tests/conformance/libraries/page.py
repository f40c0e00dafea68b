"""The table of docs/conformance.md: one row per library."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from .. import sections
from .environment import ROOT

PAGE = ROOT / "docs/conformance.md"
HEADER = """## Programs of other libraries

`make libraries` runs a program for each library, unchanged, with teletensor (`import teletensor.as_torch`) and with
PyTorch 2.15, and compares the values: forward passes, losses and gradients, short trainings, generated texts and others.
The weights are the same; where numbers are drawn, sizes and bounds are compared. A cell counts the functions whose values
are PyTorch's, of those that were run. The programs are in tests/conformance/libraries. `make libraries ONLY="timm peft"`
runs some; `RESUME=1` skips those that ran since teletensor was changed.

| library | version | import | forward | backward | training | generate | other | why not all |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass
class Row:
    """The results of a library's program."""

    KINDS: ClassVar = ("import", "forward", "backward", "training", "generate", "other")

    name: str
    version: str
    results: dict[str, list[bool]] = field(default_factory=dict)  # by kind
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)  # function, difference, reason

    def add(self, kind: str, function: str, what: str, reason: str | None = None) -> None:
        """Adds a function's result; `what` describes the difference, "" if the values equal PyTorch's."""
        self.results.setdefault(kind, []).append(not what)
        if what:
            self.failures.append((function, what, reason))

    @property
    def count(self) -> int:
        """The number of functions."""
        return sum(map(len, self.results.values()))

    @property
    def passed(self) -> int:
        """The number of functions whose values are PyTorch's."""
        return sum(map(sum, self.results.values()))

    def cell(self, kind: str) -> str:
        """The results of a kind as text."""
        results = self.results.get(kind, [])
        if kind == "import":
            return "yes" if all(results) and results else "no"
        return f"{sum(results)}/{len(results)}" if results else ""

    def line(self) -> str:
        """The row of the table."""
        why = "; ".join(
            f"{function}: {reason or 'not explained: ' + what[:120]}" for function, what, reason in self.failures
        )
        cells = [
            self.name,
            self.version,
            *(self.cell(kind) for kind in self.KINDS),
            why.replace("|", "/").replace("\n", " "),
        ]
        return f"| {' | '.join(cells)} |"


def write(path: Path, rows: list[Row]) -> None:
    """Replaces the rows of the given libraries; rows of others are kept."""
    sections.write(path, HEADER, [row.line() for row in rows])
