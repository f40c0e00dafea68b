"""Compares the outcomes of a file's tests with both packages: the row of the table, and the list of failures."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from .execution import Outcome
from .reasons import REASONS


@dataclass
class Comparison:
    """The tests of a file by their outcomes with both packages. Tests that PyTorch skips are not counted."""

    file: str
    every: int = 1  # one of so many tests was run
    both: int = 0
    neither: int = 0
    only_ours: int = 0  # failed with PyTorch only
    failures: dict[str, str] = field(default_factory=dict)  # tests that failed, or were skipped, with teletensor only

    def reasons(self) -> Counter[str]:
        """The number of failures by reason; unexplained ones count under ""."""
        return Counter(self.reason(test) for test in self.failures)

    def reason(self, test: str) -> str:
        """The known reason of a failure; "" if there is none."""
        text = f"{self.file}::{test}: {self.failures[test]}"
        return next((why for pattern, why in REASONS.items() if re.search(pattern, text)), "")

    def unexplained(self) -> dict[str, str]:
        """The failures without a reason."""
        return {test: message for test, message in self.failures.items() if not self.reason(test)}

    def cells(self) -> list[str]:
        """The row of the table."""
        counts = self.reasons()
        unexplained = counts.pop("", 0)
        why = "; ".join(f"{count}: {reason}" for reason, count in counts.most_common())
        numbers = (self.both, counts.total(), unexplained, self.neither, self.only_ours)
        return [self.file, f"1 in {self.every}" if self.every > 1 else "all", *map(str, numbers), why]


def compare(file: str, ours: dict[str, Outcome], theirs: dict[str, Outcome], every: int = 1) -> Comparison:
    """Sorts the tests that PyTorch's package ran. If the file could not be imported, all of them failed."""
    result = Comparison(file, every)
    for test, expected in theirs.items():
        actual = ours.get("") or ours.get(test, Outcome("failed", "the test does not exist"))
        if expected.state == "skipped":
            continue
        if expected.state == "failed":
            result.neither += actual.state == "failed"
            result.only_ours += actual.state == "passed"
        elif actual.state == "passed":
            result.both += 1
        else:
            result.failures[test] = actual.message if actual.state == "failed" else f"skipped: {actual.message}"
    return result


def kinds(failures: dict[str, str]) -> list[tuple[str, int]]:
    """Messages without their numbers and names, the most frequent first."""
    texts = (re.sub(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|-?\d+(\.\d+)?(e[-+]?\d+)?", "_", message)[:120] for message in failures.values())
    return Counter(texts).most_common()
