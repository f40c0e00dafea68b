"""Writes flops.json: what PyTorch's FlopCounterMode counts for flop_models.py. Run with an interpreter that has PyTorch:

    .venv-peers/bin/python -m tests.python.profiler.record_flops
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from .flop_models import counts, models

if __name__ == "__main__":
    rows = {name: counts(FlopCounterMode, *make()) for name, make in models(torch).items()}
    Path(__file__).with_name("flops.json").write_text(json.dumps(rows, indent=1) + "\n")
