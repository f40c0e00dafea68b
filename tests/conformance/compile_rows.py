"""Runs the functions of tests/python/compile/rows.py and kind_rows.py with teletensor and PyTorch; compares graphs and breaks.

    .venv/bin/python -m tests.conformance.compile_rows --one > ours.json
    PEER_PYTHON -m tests.conformance.compile_rows --one --peer > theirs.json
    .venv/bin/python -m tests.conformance.compile_rows ours.json theirs.json
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import sys
import warnings

os.environ.setdefault("TELETENSOR_STORED_CAPTURES", "0")  # rows do not depend on earlier runs


def load_rows(peer: bool):
    """The module of the rows; with PyTorch under teletensor's name if `peer`."""
    if peer:
        import torch

        sys.modules["teletensor"] = torch
    importlib.import_module("tests.python.compile.kind_rows")
    return importlib.import_module("tests.python.compile.rows")


def counts(torch, function, args) -> tuple[int, int, object]:
    """The graphs and graph breaks of a first call, and its result."""
    from importlib import import_module

    torch._dynamo.reset()
    counters = import_module(f"{torch.__name__}._dynamo.utils").counters
    counters.clear()
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    result = torch.compile(function, backend=backend)(*args)
    return len(graphs), sum(counters["graph_break"].values()), result


def main() -> None:
    if "--one" not in sys.argv:
        ours, theirs = (json.loads(pathlib.Path(p).read_text()) for p in sys.argv[1:3])
        common = [name for name in ours if name in theirs and "error" not in (ours[name], theirs[name])]
        same = [n for n in common if ours[n][0] <= theirs[n][0] and ours[n][1] <= theirs[n][1]]
        print(f"{len(same)} of {len(common)} functions have as many graphs and breaks as with PyTorch, or fewer")
        for name in common:
            if name not in same:
                print(f"  {name}: {ours[name]} against {theirs[name]}")
        return
    warnings.simplefilter("ignore")
    module = load_rows("--peer" in sys.argv)
    torch = module.torch
    torch.manual_seed(0)
    args = torch.randn(3, 4), torch.randn(3, 4)
    found = {}
    for function, _, _ in module.ROWS:
        try:
            found[function.__qualname__] = counts(torch, function, args)[:2]
        except Exception as e:  # noqa: BLE001 - reported as a row
            print(f"{function.__qualname__}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
            found[function.__qualname__] = "error"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
