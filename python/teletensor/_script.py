"""Runs an unmodified program that imports PyTorch: ``teletensor run`` and ``python -m teletensor.as_torch``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# A folder whose `torch` imports teletensor, with PyTorch's package metadata.
TORCH_PATH = Path(__file__).parent / "_torch_path"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the program and its arguments."""
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as in python -m")
    parser.add_argument("-c", "--code", action="store_true", help="the program is code, as in python -c")
    parser.add_argument("script", help="the program: a file, a module or code")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(args: argparse.Namespace) -> int:
    """Replaces this process by Python running the program. Returns only if that fails: the exit status.

    TORCH_PATH comes first in PYTHONPATH, so that processes that the program starts import the same `torch`.
    """
    if args.module and args.code:
        print("teletensor run: --module and --code exclude each other", file=sys.stderr)
        return 2
    if not args.module and not args.code and not os.path.exists(args.script):
        print(f"teletensor run: expected a program, found no file {args.script!r}", file=sys.stderr)
        return 2
    # The folder of the running package comes after it, so that a package that is not installed is found too.
    own = [str(TORCH_PATH), *([] if _installed() else [str(TORCH_PATH.parent.parent)])]
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in own]
    os.environ["PYTHONPATH"] = os.pathsep.join(own + inherited)
    flag = ["-m"] if args.module else ["-c"] if args.code else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *flag, args.script, *args.arguments])
    raise AssertionError("os.execv returned")


def _installed() -> bool:
    """Whether a new interpreter finds this package without PYTHONPATH."""
    return str(TORCH_PATH.parent.parent) in [str(Path(path)) for path in sys.path] and "site-packages" in str(TORCH_PATH)


def main(argv: list[str] | None = None) -> int:
    """Runs the command line of ``python -m teletensor.as_torch``; returns the exit status if nothing could be run."""
    parser = argparse.ArgumentParser(
        prog="python -m teletensor.as_torch", allow_abbrev=False,
        description="Runs a program that imports PyTorch, unchanged, with teletensor.",
    )  # fmt: skip
    add_arguments(parser)
    return run(parser.parse_args(argv))
