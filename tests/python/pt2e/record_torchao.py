"""Writes torchao's values of torchao_cases.py to data/torchao.json.

python -m tests.python.pt2e.record_torchao    # with PyTorch 2.15 and torchao 0.18
"""

from __future__ import annotations

import json
from pathlib import Path

from .torchao_cases import CASES, value_of

VALUES = Path(__file__).with_name("data") / "torchao.json"


def rounded(value: object) -> object:
    """The value with 7 digits, which float32 has."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def main() -> None:
    """Writes the values of all cases."""
    import torch
    import torchao.quantization
    import torchao.quantization.qat as qat

    lines = [f"{json.dumps(name)}: {json.dumps(rounded(value_of(name, torch, torchao.quantization, qat)))}" for name in CASES]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
