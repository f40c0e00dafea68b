"""`python -m tests.conformance.libraries.worker NAME LIBRARY FILE`: runs a program; writes its values as JSON.

LIBRARY is "teletensor" or "torch". A function that raises is recorded as {"error": text}, and the others still run.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from .values import plain

KINDS = ("forward", "backward", "training", "generate", "other")


def functions(module: Any) -> dict[str, Any]:
    """The program's functions by name, in their order."""
    return {
        name: f
        for name, f in vars(module).items()
        if callable(f)
        and name[0] != "_"
        and name.rpartition("_")[2] in KINDS
        and getattr(f, "__module__", "") == module.__name__
    }


def run(name: str) -> dict[str, Any]:
    """The values of all functions, and "import"."""
    results: dict[str, Any] = {}
    try:
        module = importlib.import_module(f"{__package__}.{name}")
    except Exception:
        return {"import": {"error": _last_lines()}}
    results["import"] = {"value": True}
    for function_name, function in functions(module).items():
        try:
            results[function_name] = {"value": plain(function())}
        except Exception:
            results[function_name] = {"error": _last_lines()}
    return results


def _last_lines() -> str:
    return traceback.format_exc(limit=-6)


def main() -> None:
    """Runs the program named on the command line."""
    name, library, file = sys.argv[1:]
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if library == "teletensor":
        importlib.import_module("teletensor.as_torch")
    results = run(name)
    Path(file).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
