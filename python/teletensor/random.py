"""torch.random's names."""

import contextlib

from ._random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "fork_rng"]


@contextlib.contextmanager
def fork_rng(devices=None, enabled: bool = True):
    """Restores the generator's state at the end."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
