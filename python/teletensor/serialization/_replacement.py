"""Replacement: a file that replaces another one when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import IO


def _is_replaceable(path: str) -> bool:
    """Whether a path is free or a regular file. Others, such as /dev/null and pipes, are written to."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def replacing(path: str | os.PathLike):
    """A context with a new binary file, which replaces the file at `path` at the end of the block, atomically.

    If the block raises an exception, the new file is removed. Symbolic links are followed; the permissions of an existing
    file are kept. If no file can be created beside it, the file itself is written.

    Raises:
        RuntimeError: the folder does not exist.
        OSError: the file cannot be written.
    """
    target = os.path.realpath(os.fspath(path))
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"[save] Parent directory {folder} does not exist.")
    if os.path.isdir(target):
        raise IsADirectoryError(f"[save] expected the path of a file, got the folder {os.fspath(path)!r}")
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.tmp")
    file = _create(temporary, target) if _is_replaceable(target) else None
    if file is None:
        with open(target, "wb") as direct:
            yield direct
        return
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _create(temporary: str, target: str) -> IO[bytes] | None:
    try:
        file = open(temporary, "xb", buffering=1 << 20)  # noqa: SIM115 - the caller closes it
    except PermissionError:
        if os.path.exists(target) and os.access(target, os.W_OK):
            return None  # the folder cannot be written, but the file can
        raise
    with contextlib.suppress(FileNotFoundError):
        os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))
    return file


def _sync_folder(folder: str) -> None:
    """Makes the rename durable where the file system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
