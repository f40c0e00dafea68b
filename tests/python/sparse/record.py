"""Records in values.json what PyTorch does with the calls of cases.py. Run with PyTorch's Python: python record.py.

Each call runs in a process of its own: some crash PyTorch 2.15, and are recorded as errors.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import torch
from cases import EXPRESSIONS, operands
from encode import outcome

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def _run(expression: str) -> dict:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        found = json.dumps(outcome(torch, expression, operands(torch)))
        with os.fdopen(write, "w") as file:
            file.write(found)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text and status == 0 else {"error": "crash", "message": "PyTorch's process ended"}


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(e)}: {json.dumps(_run(e))}" for e in EXPRESSIONS)
    Path(__file__).with_name("values.json").write_text(f'{{"torch": "{torch.__version__}", "results": {{\n{lines}\n}}}}\n')
