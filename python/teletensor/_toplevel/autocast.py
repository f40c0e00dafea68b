"""Functions that read and set autocast's state. torch.autocast is the usual interface."""

from __future__ import annotations

import threading

from .. import _C
from ..amp import autocast_mode

_state = threading.local()


def _depth() -> int:
    return getattr(_state, "depth", 0)


def autocast_increment_nesting() -> int:
    """Adds 1 to the number of nested autocast blocks of the thread, and returns it."""
    _state.depth = _depth() + 1
    return _state.depth


def autocast_decrement_nesting() -> int:
    """Subtracts 1 from the number of nested autocast blocks of the thread, and returns it."""
    _state.depth = _depth() - 1
    return _state.depth


def clear_autocast_cache() -> None:
    """Has no effect: casts are not cached."""


def is_autocast_cache_enabled() -> bool:
    """The last value passed to set_autocast_cache_enabled, initially True. Casts are not cached."""
    return getattr(_state, "cache", True)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Stores the setting. Casts are not cached, which changes no value."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _state.cache = enabled


def set_autocast_enabled(device_type: str | bool = "cuda", enabled: bool | None = None) -> None:
    """Turns autocast of a device type on or off in this thread; ``set_autocast_enabled(True)`` applies to "cuda"."""
    if isinstance(device_type, bool):
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _C.set_autocast_dtype(device_type, autocast_mode.fast_dtype(device_type) if enabled else None)


set_autocast_enabled.__overloads__ = ("device_type, enabled", "enabled")


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Sets the dtype of autocast of a device type."""
    autocast_mode.set_fast_dtype(device_type, dtype)
    if _C.autocast_dtype(device_type) is not None:
        _C.set_autocast_dtype(device_type, dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled)."""
    set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype) -> None:
    """set_autocast_dtype("cpu", dtype)."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype) -> None:
    """set_autocast_dtype("cuda", dtype)."""
    set_autocast_dtype("cuda", dtype)


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu")."""
    return _C.autocast_dtype("cpu") or autocast_mode.fast_dtype("cpu")


def is_autocast_ipu_enabled() -> bool:
    """Returns False: the engine has no IPUs."""
    return False


is_autocast_xla_enabled = is_autocast_ipu_enabled
