"""Records the functions that PyTorch's __torch_function__ overrides, and values of calls of torch.ops.aten. Run by a Python with PyTorch:

.venv-peers/bin/python -m tests.python.overrides.record
"""

from __future__ import annotations

import json
import pathlib

import torch
from torch import overrides

from tests.python.names.record import plain

from .aten_cases import evaluate, rows

PLACE = pathlib.Path(__file__).with_name("overridable.json")


def recorded() -> dict[str, list[str]]:
    """The names of overridable functions by namespace."""
    found: dict[str, set[str]] = {}
    for group in overrides.get_overridable_functions().values():
        for function in group:
            name = overrides.resolve_name(function)
            place = "torch.Tensor" if name.startswith("torch.Tensor.") else name.rpartition(".")[0]
            found.setdefault(place, set()).add(name.removeprefix(f"{place}."))
    return {place: sorted(names) for place, names in sorted(found.items())}


if __name__ == "__main__":
    values = {row: plain(evaluate(torch, row)) for row in rows()}
    PLACE.write_text(json.dumps({"version": torch.__version__, "names": recorded(), "values": values}, indent=0) + "\n")
