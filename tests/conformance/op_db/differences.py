"""differences.yaml: what differs on purpose or cannot be compared, by operator, and why."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import yaml

_TABLE = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())


def allowance_of(name: str) -> dict:
    """What of an operator's results is comparable: arguments of checks.Allowance."""
    found = {}
    if name in _TABLE["undetermined"]:
        found["values"] = False
    if name in _TABLE["up_to_sign"]:
        found["absolute"] = True
    if name in _TABLE["drawn_where"]:
        found["drawn_where"] = _TABLE["drawn_where"][name]
    if name in _TABLE["looser"]:
        found["looser"] = float(_TABLE["looser"][name]["times"])
    return found


def reason(name: str, check: str, why: str) -> str:
    """Why a difference in this operator's check is meant; empty where it is not."""
    for entry in _TABLE["on_purpose"]:
        names = entry["op"] if isinstance(entry["op"], list) else [entry["op"]]
        if any(fnmatch.fnmatch(name, n) for n in names) and fnmatch.fnmatch(check, entry.get("check", "*")):
            if re.search(entry["saying"], why):
                return entry["why"]
    return ""


def reasons() -> list[str]:
    """All that may be given."""
    return [entry["why"] for entry in _TABLE["on_purpose"]]


def absence(name: str) -> str:
    """Why we have no such operator; empty where nobody said."""
    for pattern, why in _TABLE["absent"].items():
        if fnmatch.fnmatch(name, pattern):
            return why
    return ""
