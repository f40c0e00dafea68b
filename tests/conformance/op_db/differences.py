"""Reads differences.yaml: operators that differ on purpose or cannot be compared, with the reasons."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import yaml

_TABLE = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())


def allowance_of(name: str) -> dict:
    """Which parts of an operator's results can be compared: arguments of checks.Allowance."""
    found = {}
    if name in _TABLE["undetermined"]:
        found["values"] = False
    if name in _TABLE["up_to_sign"]:
        found["absolute"] = True
    if name in _TABLE["random_where"]:
        found["random_where"] = _TABLE["random_where"][name]
    if name in _TABLE["tolerance_factor"]:
        found["tolerance_factor"] = float(_TABLE["tolerance_factor"][name]["times"])
    return found


def reason(name: str, check: str, why: str) -> str:
    """The reason for a deliberate difference in this operator's check; empty if there is none."""
    for entry in _TABLE["on_purpose"]:
        names = entry["op"] if isinstance(entry["op"], list) else [entry["op"]]
        if any(fnmatch.fnmatch(name, n) for n in names) and fnmatch.fnmatch(check, entry.get("check", "*")):
            if re.search(entry["saying"], why):
                return entry["why"]
    return ""


def reasons() -> list[str]:
    """All reasons for deliberate differences."""
    return [entry["why"] for entry in _TABLE["on_purpose"]]


def absence(name: str) -> str:
    """The reason why the operator is missing; empty if none is listed."""
    for pattern, why in _TABLE["absent"].items():
        if fnmatch.fnmatch(name, pattern):
            return why
    return ""
