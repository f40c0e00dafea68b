"""Evaluates the rows of rows.py with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.quantized.record
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

from .rows import names, rows

VALUES = Path(__file__).with_name("values.json")


def plain(value: Any) -> Any:
    """A value for JSON. Tensors become their dtype, sizes and values; quantized ones the integers and parameters."""
    if getattr(value, "is_quantized", False):
        scheme = str(value.qscheme()).removeprefix("torch.")
        channels = scheme != "per_tensor_affine"
        parameters = (
            [value.q_per_channel_scales().tolist(), value.q_per_channel_zero_points().tolist(), value.q_per_channel_axis()]
            if channels
            else [value.q_scale(), value.q_zero_point()]
        )
        kind = str(value.dtype).rpartition(".")[2]
        return [kind, list(value.shape), value.int_repr().reshape(-1).tolist(), scheme, *parameters]
    if hasattr(value, "detach"):
        return [str(value.dtype).rpartition(".")[2], list(value.shape), value.detach().reshape(-1).tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def value_of(row: str, torch: ModuleType) -> Any:
    """The value of a row, or the type of the error that it raises."""
    try:
        return plain(eval(row, names(torch)))  # noqa: S307 - rows of this folder
    except Exception as e:  # noqa: BLE001 - any error is a result
        return type(e).__name__


def main(torch: ModuleType) -> None:
    """Writes the values of all rows."""
    lines = [f"{json.dumps(row)}: {json.dumps(value_of(row, torch))}" for row in rows()]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    import torch
    import torch.ao.nn.quantized
    import torch.ao.quantization.fx._decomposed  # defines the operators

    main(torch)
