"""Exports the programs with one package, and runs the other's files. Arguments: the package, a folder.

Prints a JSON object: by program the operators of export and of run_decompositions, or the error; and by program whether the file
of the other package gives its results.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.conformance.graphs.programs import programs

FUNCTIONAL = "functional"


def operators(program: Any) -> list[str]:
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)]


def tensors(torch: Any, value: Any) -> list[Any]:
    return [v.detach() for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def written(torch: Any, package: str, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (module, args) in programs(torch).items():
        try:
            program = torch.export.export(module, args)
            found[name] = operators(program)
            torch.export.save(program, folder / f"{package}_{name}.pt2")
            torch.save(tensors(torch, program.module()(*args)), folder / f"{package}_{name}.pt")
            found[f"{name} {FUNCTIONAL}"] = operators(torch.export.export(module, args).run_decompositions())
        except Exception as e:  # noqa: BLE001 - an error is a result
            found.setdefault(name, [])
            found[f"{name} error"] = f"{type(e).__name__}: {str(e)[:200]}"
    return found


def read(torch: Any, other: str, folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.glob(f"{other}_*.pt2")):
        try:
            program = torch.export.load(path)
            args, kwargs = program.example_inputs
            results = tensors(torch, program.module()(*args, **kwargs))
            for a, b in zip(results, torch.load(path.with_suffix(".pt")), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
            found[path.stem] = "equal"
        except Exception as e:  # noqa: BLE001
            found[path.stem] = f"{type(e).__name__}: {str(e)[:200]}"
    return found


if __name__ == "__main__":
    package, step, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    torch = importlib.import_module(package)
    result = written(torch, package, folder) if step == "write" else read(torch, step, folder)
    print("RESULT" + json.dumps(result))
