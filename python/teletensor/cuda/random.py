"""Provides the names of torch.cuda.random.

A session has one generator for all devices: a GPU draws the same numbers as the CPU.
"""

from __future__ import annotations

from .. import _random
from .._random import initial_seed, manual_seed, seed
from ._devices import device_count, get_device_name

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip

manual_seed_all, seed_all = manual_seed, seed


def _check(device) -> None:
    get_device_name(device)  # raises if there is no such GPU


def get_rng_state(device="cuda"):
    """The state of the session's generator, like ``torch.get_rng_state``. Raises if there is no such GPU."""
    _check(device)
    return _random.get_rng_state()


def set_rng_state(new_state, device="cuda") -> None:
    """Restores a state returned by get_rng_state, for every device."""
    _check(device)
    _random.set_rng_state(new_state)


def get_rng_state_all() -> list:
    """The state of the session's generator, repeated for each GPU."""
    return [_random.get_rng_state()] * device_count()


def set_rng_state_all(new_states) -> None:
    """Restores a state returned by get_rng_state_all."""
    for state in list(new_states)[-1:]:
        _random.set_rng_state(state)
