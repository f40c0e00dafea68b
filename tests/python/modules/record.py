"""Runs the cases in this folder with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.modules.record
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from ..names.record import plain

FAMILIES = ("averages", "hooks", "initialisation", "losses", "optimizers", "parametrizations", "schedules", "texts")
VALUES = Path(__file__).with_name("values.json")


def cases() -> dict[str, Any]:
    """All cases: functions of the module `torch` whose results JSON can express."""
    found = {}
    for family in FAMILIES:
        module = importlib.import_module(f"{__package__}.{family}_cases")
        found.update({f"{family}.{name[5:]}": case for name, case in vars(module).items() if name.startswith("case_")})
    return found


def rounded(value: Any) -> Any:
    """The value with numbers of six digits, so that the file stays small."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def main(torch: Any) -> None:
    """Writes the values of all cases."""
    values = {name: rounded(plain(case(torch))) for name, case in cases().items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(values.items())]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    import torch

    main(torch)
