"""Runs the cases in this folder with PyTorch: writes the dtypes of results in autocast to dtypes.json, and training runs
with a GradScaler to scaler.json.

PyTorch's rules for GPUs are recorded with tensors without values, so no GPU is needed.

.venv-peers/bin/python -m tests.python.amp.record
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import ModuleType

from .cases import CASES, VARIANTS, dtypes
from .scaler_cases import OPTIMIZERS, history

DTYPES, HISTORIES = Path(__file__).with_name("dtypes.json"), Path(__file__).with_name("scaler.json")
SETTINGS = (("cpu", "bfloat16"), ("cpu", "float16"), ("cuda", "float16"), ("cuda", "bfloat16"))


def record(torch: ModuleType) -> dict:
    """The dtypes by device and lower precision, then by case, one entry per variant."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    found: dict = {}
    for device, name in SETTINGS:
        lower = getattr(torch, name)
        torch.set_autocast_dtype(device, lower)
        torch.set_autocast_enabled(device, True)
        with FakeTensorMode() if device == "cuda" else contextlib.nullcontext():
            found[f"{device} {name}"] = {
                case: [dtypes(torch, call, device, lower, variant) for variant in VARIANTS]
                for case, call in CASES.items()
            }
        torch.set_autocast_enabled(device, False)
    return found


if __name__ == "__main__":
    import torch

    rows = [
        f"{json.dumps(setting)}: {{\n"
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items())
        + "\n}"
        for setting, cases in record(torch).items()
    ]
    DTYPES.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    histories = {f"{name}, clip={clip}": history(torch, name, clip) for name in OPTIMIZERS for clip in (False, True)}
    HISTORIES.write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in histories.items()) + "\n}\n"
    )
