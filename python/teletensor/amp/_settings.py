"""Functions that read and set autocast's state. torch.autocast is the usual interface."""

from __future__ import annotations

from .. import _C
from .._absent_autocast import absent_autocast


def _require_bool(enabled) -> None:
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")


def autocast_increment_nesting() -> int:
    """Adds 1 to the number of nested autocast blocks of the thread, and returns it."""
    return _C.add_autocast_nesting(1)


def autocast_decrement_nesting() -> int:
    """Subtracts 1 from the number of nested autocast blocks of the thread, and returns it."""
    return _C.add_autocast_nesting(-1)


def clear_autocast_cache() -> None:
    """Frees the casts of parameters that the engine keeps for autocast."""
    _C.clear_autocast_cache()


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the outermost autocast block ends."""
    return _C.autocast_cache_enabled()


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether casts of parameters are kept until the outermost autocast block ends."""
    _require_bool(enabled)
    _C.set_autocast_cache_enabled(enabled)


def set_autocast_enabled(device_type: str | bool = "cuda", enabled: bool | None = None) -> None:
    """Turns autocast of a device type on or off in this thread; ``set_autocast_enabled(True)`` applies to "cuda"."""
    if isinstance(device_type, bool):
        device_type, enabled = "cuda", device_type
    _require_bool(enabled)
    _C.set_autocast_enabled(device_type, enabled)


set_autocast_enabled.__overloads__ = ("device_type, enabled", "enabled")


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Sets the dtype of autocast of a device type."""
    _C.set_autocast_fast_dtype(device_type, dtype)


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
    return _C.autocast_fast_dtype("cpu")


def is_autocast_ipu_enabled() -> bool:
    """What set_autocast_ipu_enabled() has set in this thread; False by default."""
    return "ipu" in absent_autocast.enabled


def is_autocast_xla_enabled() -> bool:
    """What set_autocast_xla_enabled() has set in this thread; False by default."""
    return "xla" in absent_autocast.enabled


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Sets what is_autocast_ipu_enabled() returns. The engine has no such device, whose operators it would concern."""
    absent_autocast.enable("ipu", enabled)


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Sets what is_autocast_xla_enabled() returns. The engine has no such device, whose operators it would concern."""
    absent_autocast.enable("xla", enabled)


def get_autocast_ipu_dtype():
    """What set_autocast_ipu_dtype() has set in this thread; float16 by default."""
    return absent_autocast.dtype("ipu")


def get_autocast_xla_dtype():
    """What set_autocast_xla_dtype() has set in this thread; bfloat16 by default."""
    return absent_autocast.dtype("xla")


def set_autocast_ipu_dtype(dtype) -> None:
    """Sets what get_autocast_ipu_dtype() returns."""
    absent_autocast.set_dtype("ipu", dtype)


def set_autocast_xla_dtype(dtype) -> None:
    """Sets what get_autocast_xla_dtype() returns."""
    absent_autocast.set_dtype("xla", dtype)
