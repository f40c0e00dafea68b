"""Runs the cases in this folder with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.modules.record
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..names import record as shared
from ..names.record import plain

FAMILIES = ("averages", "hooks", "initialisation", "losses", "optimizers", "parametrizations", "schedules", "texts")
VALUES = Path(__file__).with_name("values.json")


def cases() -> dict[str, Any]:
    """All cases of this folder."""
    return shared.cases(__package__, FAMILIES)


def rounded(value: Any) -> Any:
    """The value with numbers of six digits, so that the file stays small."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def main(torch: Any) -> None:
    """Writes the values of all cases."""
    shared.write({name: rounded(plain(case(torch))) for name, case in cases().items()}, VALUES)


if __name__ == "__main__":
    import torch

    main(torch)
