"""Runs the cases in this folder with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.library.record
"""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

from tests.python.names.record import plain

VALUES = Path(__file__).with_name("values.json")
_numbers = itertools.count()


def namespace() -> str:
    """A new name for a namespace of operators."""
    return f"cases{next(_numbers)}"


def cases() -> dict[str, Any]:
    """All cases: functions of the module `torch` whose results JSON can express."""
    found = {}
    for family in ("aliases", "operators", "private", "trace"):
        module = importlib.import_module(f"{__package__}.{family}_cases")
        found.update({f"{family}.{name[5:]}": case for name, case in vars(module).items() if name.startswith("case_")})
    return found


if __name__ == "__main__":
    import torch
    import torch.nn.attention.flex_attention  # noqa: F401
    import torch.onnx.operators
    import torch.onnx.symbolic_helper

    values = {name: plain(case(torch)) for name, case in cases().items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(values.items())]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
