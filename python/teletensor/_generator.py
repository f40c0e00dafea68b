"""Generator: a random number sequence independent of the session's."""

from __future__ import annotations

import functools
import random

from . import _C
from ._C import Tensor
from ._random import check_state

__all__ = ["Generator"]


def _signed(seed: int) -> int:
    return (seed + 2**63) % 2**64 - 2**63


class Generator:
    """A random number generator with its own state (seed, offset), which each call with ``generator=`` advances.

    Such calls do not wait.
    """

    def __init__(self, device="cpu"):
        self.device = _C.device(device)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Restarts the sequence from a seed."""
        self._seed = int(seed) % 2**64
        self._state = _C.tensor([_signed(self._seed), 0], dtype=_C.int64)
        return self

    def seed(self) -> int:
        """Seeds the generator from the system's entropy and returns the seed."""
        self.manual_seed(random.SystemRandom().getrandbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """Returns the seed that was set last."""
        return self._seed

    def get_state(self) -> Tensor:
        """Returns (seed, offset) as a tensor of two int64."""
        return self._state.clone()

    def set_state(self, state: Tensor) -> Generator:
        """Restores a state returned by get_state.

        Raises:
            RuntimeError: the tensor is not such a state, for example because PyTorch made it.
        """
        check_state("set_state", state)
        self._state = state.clone()
        return self

    def draw_in_client(self) -> random.Random:
        """Returns a Python generator for random choices in the client, such as a sample order. Waits for the state."""
        seed, offset = self._state.tolist()
        self._state = _C.tensor([seed, offset + 1], dtype=_C.int64)
        return random.Random(f"{seed}:{offset}")

    def __enter__(self) -> Generator:
        self._session = _C.ops.get_rng_state()
        _C.ops.set_rng_state(self._state)
        return self

    def __exit__(self, *exc) -> None:
        self._state = _C.ops.get_rng_state()
        _C.ops.set_rng_state(self._session)


def with_generator(function):
    """Adds ``generator=`` to a function that draws from the session's generator."""

    @functools.wraps(function)
    def draw(*args, generator: Generator | None = None, **kwargs):
        if generator is None:
            return function(*args, **kwargs)
        with generator:
            return function(*args, **kwargs)

    return draw


drawing_functions = {
    name: with_generator(getattr(_C.torch, name))
    for name in (
        "rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "binomial", "rand_like",
        "randn_like",
    )
}  # fmt: skip
for _name in (
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_", "random_",
    "uniform_",
):  # fmt: skip
    setattr(Tensor, _name, with_generator(getattr(Tensor, _name)))
