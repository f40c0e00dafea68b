"""Regions of autocast that begin and end in separate calls."""

from .autocast_mode import autocast


class _UnmanagedAutocast(autocast):
    """A region that _enter_autocast begins and _exit_autocast ends."""


def _enter_autocast(*vals) -> _UnmanagedAutocast:
    mode = _UnmanagedAutocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: _UnmanagedAutocast) -> None:
    mode.__exit__(None, None, None)
