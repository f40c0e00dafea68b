"""Runs a program in a process of its own; keeps the values in build/libraries, so that a later run can use them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import environment
from .environment import ROOT

FOLDER = ROOT / "build/libraries"
LIMIT = 1800  # seconds that a program may take
Show = Callable[[str, str, int], None]  # receives the library, the running function and the number of functions done


def _key(name: str) -> str:
    """Changes when a program, what it shares with others, or a library's version changes."""
    here = Path(__file__).parent
    files = [*sorted(here.glob(f"{name}*.py")), here / "tools.py", here / "values.py", here / "worker.py"]
    text = "".join(file.read_text() for file in files) + (environment.VENV / "requirements.txt").read_text()
    return hashlib.sha256(text.encode()).hexdigest()


def _stored(name: str, library: str) -> dict[str, Any]:
    """The functions' values of an earlier run that was completed with the same program, and in which none failed; else {}."""
    file = FOLDER / f"{name}.{library}.json"
    stored = json.loads(file.read_text()) if file.exists() else {}
    usable = stored.get("key") == _key(name) and stored["complete"] and not any("error" in v for v in stored["values"].values())
    return stored["values"] if usable else {}


def _changed() -> float:
    """When teletensor was changed last."""
    files = [*(ROOT / "python/teletensor").rglob("*.py"), ROOT / "build/bin/teletensord"]
    return max(file.stat().st_mtime for file in [*files, *(ROOT / "build/python/teletensor").glob("_C*.so")])


def _run(name: str, library: str, show: Show) -> dict[str, Any]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    file, log = FOLDER / f"{name}.{library}.json", FOLDER / f"{name}.{library}.log"
    file.unlink(missing_ok=True)
    paths = os.pathsep.join(map(str, environment.paths(library)))
    variables = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"}
    variables["TELETENSOR_DAEMON"] = str(ROOT / "build/bin/teletensord")
    command = [environment.interpreter(library), "-m", f"{__package__}.worker", name, library, str(file), _key(name)]
    limit = time.monotonic() + LIMIT
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=output, stderr=output)
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.2)
            state = json.loads(file.read_text()) if file.exists() else {"running": "import", "values": {}}
            show(library, state["running"], len(state["values"]))
        if process.poll() is None:
            process.kill()
            process.wait()
    if not file.exists():
        return {"import": {"error": log.read_text()[-2000:] or f"no result after {LIMIT} s"}}
    state = json.loads(file.read_text())
    if not state["complete"]:
        state["values"][state["running"]] = {"error": f"the process ended with {process.returncode}, or after {LIMIT} s"}
    return state["values"]


def reference(name: str, show: Show) -> dict[str, Any]:
    """The values of a program's functions with PyTorch."""
    return _stored(name, "torch") or _run(name, "torch", show)


def values(name: str, resume: bool, show: Show) -> dict[str, Any]:
    """The values with teletensor. With `resume`, those of an earlier run if teletensor was not changed after it."""
    file = FOLDER / f"{name}.teletensor.json"
    fresh = resume and file.exists() and file.stat().st_mtime > _changed()
    return (fresh and _stored(name, "teletensor")) or _run(name, "teletensor", show)
