"""PyTorch in an environment of its own (.venv-peers), made when first asked for: a peer, never a dependency."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
INSTALLED_AS = {"yaml": "pyyaml"}  # what PyPI calls otherwise than Python


def interpreter(*packages: str) -> str:
    """The environment's Python, with torch, NumPy and the further packages (as they are imported)."""
    python = PEERS / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    wanted = ["torch", "numpy", *packages]
    if subprocess.run([str(python), "-c", f"import {', '.join(wanted)}"], capture_output=True).returncode:
        names = [INSTALLED_AS.get(name, name) for name in wanted]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *names], check=True)
    return str(python)
