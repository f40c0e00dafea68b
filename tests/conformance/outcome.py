"""What came of a suite: how many tests passed, and why each other one did not."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .reasons import REASONS


@dataclass
class Outcome:
    """Of one suite's run."""

    suite: str
    version: str
    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # the test's name: its message
    on_purpose: Counter[str] = field(default_factory=Counter)  # what fails and is explained already, by reason
    missing: str = ""  # why the suite did not run

    def reasons(self) -> Counter[str]:
        """Of the failures, by how many; those that nobody has explained count under ''."""
        return self.on_purpose + Counter(reason_of(self.suite, test) for test in self.failures)

    def unexplained(self) -> list[str]:
        """The failures without a reason."""
        return [test for test in self.failures if not reason_of(self.suite, test)]


def reason_of(suite: str, test: str) -> str:
    """Why the test fails, if that is known."""
    return next((why for pattern, why in REASONS.get(suite, {}).items() if re.search(pattern, test)), "")


def read_op_db(suite: str, report: Path) -> Outcome:
    """What tests/conformance/op_db wrote: comparisons by operator, those that differ on purpose counted there."""
    table = json.loads(report.read_text())
    outcome = Outcome(suite, f"torch {table['torch'].split('+')[0]}")
    for operator in table["operators"]:
        outcome.passed += operator["passed"]
        outcome.skipped += operator["skipped"]
        outcome.on_purpose["intended differences: tests/conformance/op_db/differences.yaml"] += operator["on_purpose"]
        if operator["state"] in ("failed", "broken"):
            outcome.failures[operator["name"]] = operator.get("broken") or f"{operator['failed']} comparisons differ"
    return outcome


def read(suite: str, version: str, report: Path) -> Outcome:
    """What pytest wrote to a JUnit report."""
    outcome = Outcome(suite, version)
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname')}::{case.get('name')}"
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        if wrong is not None:
            outcome.failures[test] = (wrong.get("message") or "").split("\n")[0]
        elif case.find("skipped") is not None:
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return outcome
