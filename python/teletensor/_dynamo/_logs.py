"""What TORCH_LOGS prints, and the counters of captures."""

from __future__ import annotations

import collections
import os
import sys

KINDS = ("graph_breaks", "guards", "recompiles", "graph_code", "graph", "bytecode", "dynamo")
counters: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
_enabled: set[str] | None = None


def set_logs(text: str | None) -> None:
    """Selects the logs by the value of TORCH_LOGS: names separated by commas, each perhaps with + or -. None: of the environment."""
    global _enabled
    value = os.environ.get("TORCH_LOGS", "") if text is None else text
    _enabled = {name.strip().lstrip("+") for name in value.split(",") if name.strip() and not name.strip().startswith("-")}


def is_enabled(kind: str) -> bool:
    """Whether a log is printed."""
    if _enabled is None:
        set_logs(None)
    return kind in _enabled or "dynamo" in _enabled


def any_enabled() -> bool:
    """Whether any log is printed."""
    if _enabled is None:
        set_logs(None)
    return bool(_enabled)


def log(kind: str, text: str) -> None:
    """Prints a text to stderr if the log is selected."""
    if is_enabled(kind):
        sys.stderr.write("".join(f"[{kind}] {line}\n" for line in text.splitlines()))
