"""Records PyTorch's results for the expressions of cases.py in rows.json: .venv-peers/bin/python tests/python/nested/record.py."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    sys.path.insert(0, str(FOLDER))
    from cases import results

    warnings.simplefilter("ignore")
    lines = [f"{json.dumps(row)}: {json.dumps(result)}" for row, result in results(torch).items()]
    (FOLDER / "rows.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(lines), "rows")


if __name__ == "__main__":
    main()
