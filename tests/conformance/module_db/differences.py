"""Reads differences.yaml: deliberate differences of modules and optimizers, with the reasons."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import yaml

_TABLE = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())


def _matches(patterns, name: str) -> bool:
    return any(fnmatch.fnmatch(name, p) for p in ([patterns] if isinstance(patterns, str) else patterns))


def is_random(name: str, description: str) -> bool:
    """Whether the values of a sample are random."""
    return any(_matches(row["name"], name) and re.search(row.get("where", ""), description) for row in _TABLE["random"])


def tolerance_factor(name: str) -> float:
    """The factor applied to the tolerances."""
    return next((float(row["times"]) for row in _TABLE["tolerance_factor"] if _matches(row["name"], name)), 1.0)


def reason(name: str, check: str, why: str) -> str:
    """The reason for a deliberate difference; empty if none is listed."""
    for row in _TABLE["on_purpose"]:
        if _matches(row["name"], name) and _matches(row.get("check", "*"), check) and re.search(row["saying"], why, re.DOTALL):
            return row["why"]
    return ""


def reasons() -> list[str]:
    """All reasons."""
    return [row["why"] for row in _TABLE["on_purpose"]]
