"""Records PyTorch's results for the expressions of cases.py in rows.json, and a file with nested tensors in peer.pt.

.venv-peers/bin/python tests/python/nested/record.py
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch

FOLDER = Path(__file__).resolve().parent


def save() -> None:
    """Writes a file with nested tensors of each kind."""
    a, b = torch.arange(6.0).reshape(2, 3), torch.ones(4, 3)
    starts, lengths = torch.tensor([0, 1]), torch.tensor([2, 1])
    tensors = {
        "jagged": torch.nested.nested_tensor([a, b], layout=torch.jagged, requires_grad=True),
        "strided": torch.nested.nested_tensor([a, b.t().contiguous()]),
        "holes": torch.nested.narrow(torch.arange(12.0).reshape(2, 3, 2), 1, starts, lengths, layout=torch.jagged),
    }
    torch.save(tensors, FOLDER / "peer.pt")


def main() -> None:
    sys.path.insert(0, str(FOLDER))
    from cases import results

    warnings.simplefilter("ignore")
    lines = [f"{json.dumps(row)}: {json.dumps(result)}" for row, result in results(torch).items()]
    (FOLDER / "rows.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    save()
    print(len(lines), "rows")


if __name__ == "__main__":
    main()
