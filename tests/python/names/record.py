"""Runs the cases in this folder with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.names.record
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

FAMILIES = (
    "argument", "attention", "comparison", "derivative", "foreach", "functional", "graph", "idioms", "lazy", "library", "optimizers",
    "programs", "prune", "pytree", "quantization", "sparsity", "suite", "toplevel",
    "utils",
)  # fmt: skip
VALUES = Path(__file__).with_name("values.json")


def cases(package: str = __package__, families: tuple[str, ...] = FAMILIES) -> dict[str, Any]:
    """All cases of a package: functions of the module `torch` whose results JSON can express."""
    found = {}
    for family in families:
        module = importlib.import_module(f"{package}.{family}_cases")
        found.update({f"{family}.{name[5:]}": case for name, case in vars(module).items() if name.startswith("case_")})
    return found


def plain(value: Any) -> Any:
    """A value as lists, dicts, numbers and text. Tensors become their dtype, sizes and values."""
    if hasattr(value, "detach"):
        numbers = value.detach()
        kind = str(numbers.dtype).rpartition(".")[2]
        return [kind, list(numbers.shape), numbers.reshape(-1).tolist()]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def error(function: Any, *args: Any, **kwargs: Any) -> str:
    """The type and text of the error that a call raises; "" if it raises none."""
    try:
        function(*args, **kwargs)
    except Exception as e:  # noqa: BLE001 - any error is a result
        return f"{type(e).__name__}: {re.sub(' at 0x[0-9a-f]+', '', str(e))}"
    return ""


def write(values: dict[str, Any], path: Path) -> None:
    """Writes a file of values with a line for each."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(values.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(torch: ModuleType) -> None:
    """Writes the values of all cases."""
    write({name: plain(case(torch)) for name, case in cases().items()}, VALUES)


if __name__ == "__main__":
    import torch

    main(torch)
