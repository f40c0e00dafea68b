"""teletensor's engine: ``bin/teletensord`` with its libraries in ``lib/``. Contains no Python interface; see teletensor."""

from __future__ import annotations

import os
import sys


def path() -> str:
    """Returns the path of teletensord."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "teletensord")


def main() -> None:
    """Replaces this process by teletensord, with the same arguments."""
    os.execv(path(), ["teletensord", *sys.argv[1:]])
