"""Writes the texts that PyTorch prints for the programs, and the results of the cases, to texts.json, for test_texts.py.

Needs the package tabulate.

.venv-peers/bin/python -m tests.python.fx.record
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from . import cases, programs

TEXTS = Path(__file__).with_name("texts.json")


def tabular_rows(graph: object) -> list[list[str]]:
    """The rows of print_tabular() without targets, whose repr() is each library's."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        graph.print_tabular()
    lines = text.getvalue().rstrip("\n").split("\n")
    starts = [0]
    for width in map(len, lines[1].split("  ")):
        starts.append(starts[-1] + width + 2)
    rows = [[line[a:b].strip() for a, b in zip(starts, starts[1:])] for line in lines]
    return [[cell for i, cell in enumerate(row) if i != 2] for row in rows]


def texts(torch: ModuleType) -> dict[str, Any]:
    """For each program the graph, the code and the table that the library prints, or the nodes' targets."""
    fx = torch.fx
    found = {}
    for program in programs.PLAIN:
        traced = fx.symbolic_trace(program(torch)[0])
        found[program.__name__] = {
            "graph": str(traced.graph), "code": traced.code, "table": tabular_rows(traced.graph),
        }  # fmt: skip
        if program is programs.perceptron:
            found["readable"] = traced.print_readable(print_output=False)
    for program in programs.CALLING:
        nodes = fx.symbolic_trace(program(torch)[0]).graph.nodes
        found[program.__name__] = [[node.op, node.name, node._pretty_print_target(node.target)] for node in nodes]
    return found


def plain(value: Any) -> Any:
    """A value as lists, dicts, numbers and text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


if __name__ == "__main__":
    import torch
    import torch.fx

    results = {name: plain(case(torch)) for name, case in vars(cases).items() if name.startswith("case_")}
    lines = [f"{json.dumps(name)}: {json.dumps(text)}" for name, text in {**texts(torch), **results}.items()]
    TEXTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
