"""Settings of the process: determinism, threads, warnings, anomaly detection."""

from __future__ import annotations

import warnings

from .._functions import (
    are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled,
    use_deterministic_algorithms,
)
from .._options import check_flags

_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms with 0 or "default" (off), 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0: nothing is required; 1: operations that are not deterministic warn; 2: they raise."""
    if not are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def set_flush_denormal(arg: bool) -> bool:
    """Returns False, as PyTorch does where it is not supported: the engine's threads compute with denormal numbers."""
    check_flags("set_flush_denormal", arg=arg)
    return False


def get_num_interop_threads() -> int:
    """Returns 1: a session computes in program order."""
    return 1


def set_num_interop_threads(nthreads: int) -> None:
    """Only validates its argument: a session computes in program order."""
    if isinstance(nthreads, bool) or not isinstance(nthreads, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(nthreads).__name__}")
    if nthreads <= 0:
        raise RuntimeError("Expected positive number of threads")


def init_num_threads() -> None:
    """Has no effect: the engine owns the threads that compute."""


_warn_always = False


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are shown once per line of code are shown each time."""
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"expected a bool, but got {type(b).__name__}")
    if b != _warn_always:
        warnings.filterwarnings("always" if b else "default", module=r"teletensor(\.|$)")
    _warn_always = b


def is_warn_always_enabled() -> bool:
    """The last value passed to set_warn_always; initially False."""
    return _warn_always
