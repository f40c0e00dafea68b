"""Loads quantized programs in a process that has used no other part of quantization: `python -m ... INPUT FILE...`."""

from __future__ import annotations

import sys

import teletensor as torch

x = torch.load(sys.argv[1])
for path in sys.argv[2:]:
    print(torch.export.load(path).module()(x).flatten().tolist())
