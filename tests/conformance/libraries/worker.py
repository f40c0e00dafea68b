"""`python -m tests.conformance.libraries.worker NAME LIBRARY FILE KEY`: runs a program; writes its values as JSON.

The programs of library NAME are the modules NAME and NAME_*. LIBRARY is "teletensor" or "torch". A function that raises
is recorded as {"error": text}, and the others still run. FILE is rewritten before each function: {"key": KEY, "complete":
whether all have run, "running": the next function, "values": those of the functions before it}.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
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


def modules(name: str) -> list[str]:
    """The names of a library's programs."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem == name or file.stem.startswith(name + "_"))


def run(name: str, record: Callable[[str, dict[str, Any]], None]) -> dict[str, Any]:
    """The values of all functions, and "import". Calls record(function, values before it)."""
    results: dict[str, Any] = {}
    try:
        programs = [importlib.import_module(f"{__package__}.{module}") for module in modules(name)]
    except Exception:
        return {"import": {"error": _last_lines()}}
    results["import"] = {"value": True}
    for function_name, function in {n: f for program in programs for n, f in functions(program).items()}.items():
        record(function_name, results)
        try:
            results[function_name] = {"value": plain(function())}
        except Exception:
            results[function_name] = {"error": _last_lines()}
    return results


def _last_lines() -> str:
    return traceback.format_exc(limit=-6)


def main() -> None:
    """Runs the program named on the command line."""
    name, library, path, key = sys.argv[1:]
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    file, draft = Path(path), Path(path + ".new")

    def record(running: str, values: dict[str, Any], complete: bool = False) -> None:
        draft.write_text(json.dumps({"key": key, "complete": complete, "running": running, "values": values}))
        draft.replace(file)

    if library == "teletensor":
        importlib.import_module("teletensor.as_torch")
    else:  # torchaudio refuses a PyTorch compiled for another version of CUDA, which no program uses
        importlib.import_module("torch").version.cuda = None
    record("", run(name, record), complete=True)


if __name__ == "__main__":
    main()
