"""The session's random number generator: counter-based (Philox), and run by the engine."""

from __future__ import annotations

import random
import threading

from . import _C, _connection
from ._mt19937 import MT19937


class _Source:
    """What the client stores about a generator: that of the session, or of a thread that has its own."""

    def __init__(self, seed: int):
        self.set_seed(seed)

    def set_seed(self, seed: int) -> None:
        """Restarts the client's stream, too."""
        self.seed = seed
        self.restored: _C.Tensor | None = None  # the state that was set after the seed
        self.client: MT19937 | None = None  # of draw_in_client(), created at its first call after the seed was set


_session = _Source(0x9E3779B97F4A7C15)
_threads = threading.local()  # .source, in a thread with its own generator


def _source() -> _Source:
    return getattr(_threads, "source", _session)


def _signed(seed: int) -> int:
    return seed if seed < 2**63 else seed - 2**64


def unsigned_seed(seed: int) -> int:
    """Returns a seed as a number of 64 bits without sign. Raises ValueError if it has more bits."""
    number = int(seed)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"Overflow when unpacking long long: expected a seed from -2^63 to 2^64 - 1, got {number}")
    return number % 2**64


def manual_seed(seed: int) -> None:
    """Restarts the session's generator from a seed; after connect_all(), that of each session."""
    _source().set_seed(unsigned_seed(seed))
    _connection.issue_in_sessions("manual_seed", _signed(_source().seed))


def seed_without_session(seed: int) -> None:
    """Same as manual_seed, in a process that has no session yet: a later session begins with the seed."""
    _session.set_seed(unsigned_seed(seed))
    _connection.set_for_later_sessions("manual_seed", _signed(_session.seed))


def use_thread_generator(seed: int | None) -> None:
    """Makes the calling thread draw from a generator of its own, with this seed; None: from the session's generator again.

    Its functions, ``manual_seed`` and others, then have no effect on other threads. Draws inside of compiled functions are from
    the session's generator.
    """
    if seed is None:
        _C.set_thread_generator(None)
        _threads.__dict__.pop("source", None)
    else:
        _threads.source = _Source(unsigned_seed(seed))
        _C.set_thread_generator(_C.tensor([_signed(_threads.source.seed), 0], dtype=_C.int64, device="cpu"))


def seed() -> int:
    """Seeds the session's generator from the system's entropy and returns the seed."""
    manual_seed(random.SystemRandom().getrandbits(63))
    return _source().seed


def initial_seed() -> int:
    """Returns the seed that was set last, or that of the state that was restored since, for which it waits."""
    source = _source()
    return source.seed if source.restored is None else int(source.restored[0]) % 2**64


def draw_in_client() -> MT19937:
    """Returns the stream of random numbers for choices in the client, seeded by the session's seed. Does not wait."""
    source = _source()
    if source.client is None:
        source.client = MT19937(source.seed)
    return source.client


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
    _source().restored = new_state.clone()
