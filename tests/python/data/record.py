"""Runs the cases in this folder with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.data.record
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.python.names.record import plain

VALUES = Path(__file__).with_name("values.json")


def cases() -> dict[str, Any]:
    """All cases: functions of the module `torch` whose results JSON can express."""
    from . import collate_cases, error_cases, order_cases, worker_cases

    found = {}
    for module in (collate_cases, error_cases, order_cases, worker_cases):
        family = module.__name__.rpartition(".")[2].removesuffix("_cases")
        found.update({f"{family}.{name[5:]}": case for name, case in vars(module).items() if name.startswith("case_")})
    return found


def main(torch: ModuleType) -> None:
    """Writes the values of all cases."""
    warnings.simplefilter("ignore")
    values = {name: plain(case(torch)) for name, case in cases().items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(values.items())]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    import torch

    main(torch)
