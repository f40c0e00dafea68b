"""Writes reference.json, the results of PyTorch for cases.py: .venv-peers/bin/python tests/python/distributions/reference.py"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
import cases


def main() -> None:
    torch.set_default_dtype(torch.float64)  # GeneralizedPareto of PyTorch 2.15 accepts no other dtype than the default
    results = {
        "version": torch.__version__,
        "distributions": [cases.evaluate(torch, row) for row in cases.DISTRIBUTIONS],
        "transforms": [cases.evaluate_transform(torch, row) for row in cases.TRANSFORMS],
        "constraints": [cases.evaluate_constraint(torch, row) for row in cases.CONSTRAINTS],
        "divergences": cases.evaluate_divergences(torch),
    }
    lines = []
    for key, value in results.items():
        if isinstance(value, list):
            body = "[\n" + ",\n".join(json.dumps(v) for v in value) + "\n]"
        else:
            body = json.dumps(value)
        lines.append(f'"{key}": {body}')
    Path(__file__).with_name("reference.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
