"""The virtual environment of the suites: .venv-conformance, whose path includes the build's teletensor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .suites import REQUIREMENTS, SUITES

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-conformance"
BUILD = ROOT / "build"


def interpreter() -> str:
    """The environment's Python; creates or updates the environment if the requirements have changed."""
    python = VENV / "bin/python"
    wanted = "\n".join([*REQUIREMENTS, *(suite.package for suite in SUITES if suite.package)])
    stamp = VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    print(f"conformance: creating {VENV.name}")
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*install, *wanted.split("\n")], check=True)
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    site = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    Path(site, "teletensor.pth").write_text(f"{BUILD / 'python'}\n{Path(__file__).parent / 'plugins'}\n")
    stamp.write_text(wanted)
    return str(python)


def version_of(package: str) -> str:
    """The installed version of a package."""
    command = [interpreter(), "-c", f"import importlib.metadata as m; print(m.version({package!r}))"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
