"""Records in training.json what PyTorch does in training.py. Run with PyTorch's Python."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from training import everything

Path(__file__).with_name("training.json").write_text(json.dumps(everything(torch), indent=0) + "\n")
