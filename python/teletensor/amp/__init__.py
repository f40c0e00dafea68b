"""Mixed precision: autocast to a lower precision, and gradient scaling against underflow."""

from . import autocast_mode, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class _UnmanagedAutocast(autocast):
    """A region that _enter_autocast begins and _exit_autocast ends."""


def _enter_autocast(*vals) -> _UnmanagedAutocast:
    mode = _UnmanagedAutocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: _UnmanagedAutocast) -> None:
    mode.__exit__(None, None, None)
