"""Reads reasons.yaml: differences of signatures that stay, each with its reason."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import yaml

TABLE = yaml.safe_load(Path(__file__).with_name("reasons.yaml").read_text())


def reason(name: str, difference: str) -> str:
    """The reason for a difference of `torch.<name>`; empty if none is listed."""
    for entry in TABLE:
        names = entry["names"] if isinstance(entry["names"], list) else [entry["names"]]
        if any(fnmatch.fnmatchcase(name.removeprefix("torch."), n) for n in names) and re.search(entry.get("saying", ""), difference):
            return entry["why"]
    return ""
