"""The outcome of a suite: how many tests passed, and why the others failed or were skipped."""

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
    """The outcome of one suite's run."""

    suite: str
    version: str
    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # test name -> message
    on_purpose: Counter[str] = field(default_factory=Counter)  # number of explained failures by reason
    missing: str = ""  # why the suite did not run

    def reasons(self) -> Counter[str]:
        """Counts failures by reason; unexplained ones count under ''."""
        return self.on_purpose + Counter(reason_of(self.suite, test) for test in self.failures)

    def unexplained(self) -> list[str]:
        """The unexplained failures."""
        return [test for test in self.failures if not reason_of(self.suite, test)]


def reason_of(suite: str, test: str) -> str:
    """The known reason for the test's failure; empty if there is none."""
    return next((why for pattern, why in REASONS.get(suite, {}).items() if re.search(pattern, test)), "")


def read_op_db(suite: str, report: Path) -> Outcome:
    """Reads the table of tests/conformance/op_db: comparisons by operator; deliberate differences count as
    explained."""
    table = json.loads(report.read_text())
    outcome = Outcome(suite, f"torch {table['torch'].split('+')[0]}")
    for operator in table["operators"]:
        outcome.passed += operator["passed"]
        outcome.skipped += operator["skipped"]
        outcome.on_purpose["differ on purpose: tests/conformance/op_db/differences.yaml"] += operator["on_purpose"]
        if operator["state"] in ("failed", "broken"):
            outcome.failures[operator["name"]] = operator.get("broken") or f"{operator['failed']} comparisons differ"
    return outcome


def read(suite: str, version: str, report: Path) -> Outcome:
    """Reads a JUnit report of pytest."""
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
