"""The session's random number generator: counter-based (Philox), and run by the engine."""

from __future__ import annotations

import itertools
import random

from . import _C, _connection

_seed = 0x9E3779B97F4A7C15
_draws = itertools.count(1)  # counts the calls of draw_in_client() since the seed was set


def manual_seed(seed: int) -> None:
    """Restarts the session's generator from a seed; after connect_all(), that of each session."""
    global _seed, _draws
    _seed, _draws = int(seed) % 2**64, itertools.count(1)
    _connection.issue_in_sessions("manual_seed", _seed if _seed < 2**63 else _seed - 2**64)


def seed() -> int:
    """Seeds the session's generator from the system's entropy and returns the seed."""
    manual_seed(random.SystemRandom().getrandbits(63))
    return _seed


def initial_seed() -> int:
    """Returns the seed that was set last."""
    return _seed


def draw_in_client() -> random.Random:
    """Returns a Python generator, derived from the seed, for random choices in the client. Does not wait."""
    return random.Random(f"{_seed}:{next(_draws)}")


def get_rng_state():
    """Returns the generator's (seed, offset) as a tensor of two int64. Reading its values waits."""
    return _C.ops.get_rng_state()


def check_state(op: str, state) -> None:
    """Raises an error unless a value has the form of a generator's state."""
    if not isinstance(state, _C.Tensor):
        raise TypeError(f"[{op}] expected a tensor, got {type(state).__name__}")
    if state.dtype is not _C.int64 or tuple(state.shape) != (2,):
        raise RuntimeError(
            f"[{op}] expected a state of two int64 (seed, offset), got {state.dtype} of shape {list(state.shape)}: states of other "
            "libraries' generators, such as those in PyTorch's files, cannot be restored"
        )


def set_rng_state(new_state) -> None:
    """Restores a state returned by get_rng_state.

    Raises:
        RuntimeError: the tensor is not such a state, for example because PyTorch made it.
    """
    check_state("set_rng_state", new_state)
    _C.ops.set_rng_state(new_state)
