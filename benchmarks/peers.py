"""Installs PyTorch into a separate environment (.venv-peers) on first use. It is a peer, never a dependency."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
INSTALLED_AS = {"yaml": "pyyaml"}  # PyPI names that differ from import names


def interpreter(*packages: str) -> str:
    """Returns the path of the environment's Python interpreter; installs torch, NumPy and `packages` (import names) on
    first use.
    """
    python = PEERS / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    wanted = ["torch", "numpy", *packages]
    if subprocess.run([str(python), "-c", f"import {', '.join(wanted)}"], capture_output=True).returncode:
        names = [INSTALLED_AS.get(name, name) for name in wanted]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *names], check=True)
    return str(python)
