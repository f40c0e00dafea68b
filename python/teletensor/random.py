"""torch.random: functions of the session's random number generator."""

import contextlib

from . import _C
from ._generator import default_generator, manual_seed  # noqa: F401 - programs may import it from here
from ._options import check_flags, check_kind
from ._random import get_rng_state, initial_seed, seed, set_rng_state

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "thread_safe_generator"]


@contextlib.contextmanager
def fork_rng(
    devices=None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices", device_type: str | None = None
):
    """Restores the state of the session's generator at the end. All devices share that generator.

    ``_caller`` and ``_devices_kw`` are names that PyTorch uses in its warnings; there are none here.
    """
    from .cuda import get_device_name

    check_flags("fork_rng", enabled=enabled)
    check_kind("fork_rng", "_caller", _caller, str)
    check_kind("fork_rng", "_devices_kw", _devices_kw, str)
    _C.device("cuda" if device_type is None else device_type)  # raises if the name is invalid
    for device in devices or ():
        get_device_name(device)  # raises if there is no such GPU
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def thread_safe_generator():
    """Returns None: all threads, those of DataLoader's workers too, can draw from the session's generator."""
    return None
