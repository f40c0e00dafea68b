"""Writes PyTorch's results of node_cases.py to nodes.json, for test_nodes.py.

.venv-peers/bin/python -m tests.python.autograd.record_nodes
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import ModuleType

from . import node_cases

NODES = Path(__file__).with_name("nodes.json")
CASES = [name for name in vars(node_cases) if name.startswith("case_")]


def result(torch: ModuleType, name: str) -> object:
    """The result of a case as JSON has it."""
    return json.loads(json.dumps(node_cases.plain(torch, getattr(node_cases, name)(torch))))


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    found = {"second_backward": {e: node_cases.second_backward(torch, e) for e in node_cases.EXPRESSIONS}}
    found["saved"] = {e: node_cases.saved(torch, e) for e in node_cases.EXPRESSIONS}
    found |= {name: result(torch, name) for name in CASES}
    rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    NODES.write_text("{\n" + ",\n".join(rows) + "\n}\n")
