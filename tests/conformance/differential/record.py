"""Runs a slice of the written calls in PyTorch and writes the outcomes to slice.json, for test_differential.py.

.venv-peers/bin/python -m tests.conformance.differential.record
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from . import written

OUTCOMES = Path(__file__).with_name("slice.json")
GROUPS = ("schedulers", "utilities", "init", "transforms", "conversions", "methods", "attributes", "functions")
DIGITS = 6  # significant digits of recorded numbers
MOST_NUMBERS = 16  # of a tensor


def plain(value: Any) -> Any:
    """A value as JSON: a tensor as its dtype, sizes and numbers, objects without values as their type's name."""
    if hasattr(value, "detach"):
        numbers = value.detach().reshape(-1)[:MOST_NUMBERS].tolist()
        return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape), plain(numbers)]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, complex):
        return ["complex", plain(value.real), plain(value.imag)]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < float("inf") else str(value)
    if isinstance(value, (bool, int, str, type(None))):
        return value
    text = str(value)
    return text if text.startswith("torch.") and "object" not in text else type(value).__name__


def outcomes(name: str, call: str, package) -> list:
    """What a call and its probes return: [text, value], or [text, "raises", names of the
    exception's classes, message]."""
    scope = written.scope(name, package)
    rows = []
    for text in (call, *written.probes(name)):
        try:
            value = eval(text, scope)  # noqa: S307 - the table in this folder
            if text is call:
                scope["x"] = value
                plain(value)  # waits: some errors are raised then
                continue
            rows.append([text, plain(value)])
        except Exception as e:  # noqa: BLE001 - types of exceptions are compared
            rows.append([text, "raises", [c.__name__ for c in type(e).__mro__[:-2]], f"{e}".split("\n")[0][:120]])
            if text is call:
                break
    return rows


def calls() -> dict[str, tuple[str, str, str]]:
    """(name, what is moved, text) of the calls of the slice, by text."""
    chosen = [name for name, (group, *_) in written.entries().items() if group in GROUPS]
    return {text: (name, what, text) for name in chosen for what, text in written.calls(name)}


def main() -> None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {text: outcomes(name, text, torch) for text, (name, _, _) in calls().items()}
    lines = ",\n".join(f"{json.dumps(text)}: {json.dumps(rows)}" for text, rows in found.items())
    OUTCOMES.write_text(f"{{\n{lines}\n}}\n")
    print(f"{len(found)} calls of PyTorch {torch.__version__}: {OUTCOMES}")


if __name__ == "__main__":
    main()
