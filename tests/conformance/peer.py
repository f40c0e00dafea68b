"""The interpreter with PyTorch, and the environment of the worker processes that compare both packages in it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.peers import interpreter

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
PACKAGES = ("scipy", "expecttest", "hypothesis", "yaml")  # of PyTorch's own tests


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds ``--python``."""
    parser.add_argument("--python", help="an interpreter with PyTorch and the packages of its tests (default: .venv-peers)")


def python_of(args: argparse.Namespace, *packages: str) -> str:
    """The interpreter that was chosen, or that of .venv-peers, into which `packages` are installed on first use."""
    return args.python or interpreter(*(packages or PACKAGES))


def environment(package: Path = BUILD / "python") -> dict[str, str]:
    """The environment of a worker process: the packages in the folder `package`, one thread, the engine of the build."""
    path = os.pathsep.join(map(str, (package, ROOT, os.environ.get("PYTHONPATH", ""))))
    return {
        **os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1",
        "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord"),
    }  # fmt: skip
