"""Scripts in separate processes, which use the engine of a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import client_environment

addresses: list[str] = []  # addresses of the engines of this run; scripts use the last one


def run(root: Path, code: str, **environment: str) -> str:
    """Runs a script with the last engine; returns what it prints, or the errors if it fails."""
    script = "import teletensor as torch, teletensor.checkpoint as ck\n" + code
    environment = client_environment(TELETENSOR_ADDRESS=addresses[-1], **environment)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, cwd=root.parent
    )
    return done.stdout if done.returncode == 0 else done.stderr
