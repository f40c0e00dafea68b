"""Records in layouts.json the strides of PyTorch's results. Run with PyTorch's Python: python record_layouts.py."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch
from layouts_cases import EXPRESSIONS, ORDERS, names, tensors

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {
        e: [[list(t.stride()) for t in tensors(eval(e, names(torch, order)), torch)] for order in ORDERS]
        for e in EXPRESSIONS
    }
    lines = ",\n".join(f"{json.dumps(e)}: {json.dumps(strides)}" for e, strides in found.items())
    Path(__file__).with_name("layouts.json").write_text(f'{{"torch": "{torch.__version__}", "results": {{\n{lines}\n}}}}\n')
