"""Installs PyTorch into a separate environment (.venv-peers) on first use. It is a peer, never a dependency."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
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


def parse_options(description: str) -> argparse.Namespace:
    """The options of a benchmark that runs its measurement with either package: --peers, --threads and, for the process
    of PyTorch, --package. Sets BENCH_THREADS for the measurement.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="compare with PyTorch, installed in a separate environment")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--package", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["BENCH_THREADS"] = str(options.threads)
    return options


def measured(description: str, module: str, measure: Callable[[str], dict]) -> tuple[argparse.Namespace, dict, dict]:
    """The options, and what measure(package) returns with teletensor and, with --peers, with PyTorch in a process of its own
    (else nothing). Does not return in that process.
    """
    options = parse_options(description)
    if options.package:
        print(json.dumps(measure(options.package)))
        sys.exit()
    ours = measure("teletensor")
    return options, ours, measured_with_pytorch(module, options.threads) if options.peers else {}


def measured_with_pytorch(module: str, threads: int) -> dict[str, dict[str, float]]:
    """What the module prints, as JSON, when it is called with --package torch in the environment of PyTorch."""
    command = [interpreter("rich"), "-m", module, "--package", "torch", "--threads", str(threads)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])
