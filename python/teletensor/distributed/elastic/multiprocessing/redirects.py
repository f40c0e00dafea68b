"""Standard streams of this process, redirected to files, for Python, C and child processes alike."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Iterator

__all__ = ["redirect", "redirect_stderr", "redirect_stdout"]

_libc = ctypes.CDLL(None)


@contextlib.contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """Within the block "stdout" or "stderr" is written to a file, which is emptied first."""
    if std not in ("stdout", "stderr"):
        raise ValueError(f"unknown standard stream <{std}>, must be one of {{'stdout', 'stderr'}}")
    fd = getattr(sys, std).fileno()

    def point_to(other: int) -> None:
        _libc.fflush(ctypes.c_void_p.in_dll(_libc, std))
        getattr(sys, std).flush()
        os.dup2(other, fd)

    original = os.dup(fd)
    try:
        with open(to_file, "wb") as file:
            point_to(file.fileno())
            try:
                yield
            finally:
                point_to(original)
    finally:
        os.close(original)


redirect_stdout = functools.partial(redirect, "stdout")
redirect_stderr = functools.partial(redirect, "stderr")
