"""Records what PyTorch's SummaryWriter writes for cases.py, in recorded.json.

Run with a Python that has PyTorch and tensorboard: python -m tests.python.tensorboard.record
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter

from .cases import CASES
from .contents import contents


def main() -> None:
    recorded = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                case(torch, writer)
            recorded[name] = contents(Path(folder))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in recorded.items())
    Path(__file__).with_name("recorded.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
