"""Generator: a random number sequence independent of the session's."""

from __future__ import annotations

import functools
import os

from . import _C, _random
from ._C import Tensor
from ._integers import is_int
from ._lazy import set_module
from ._mt19937 import MT19937
from ._random import check_state, unsigned_seed

__all__ = ["Generator", "default_generator", "manual_seed"]


def _signed(seed: int) -> int:
    return (seed + 2**63) % 2**64 - 2**63


class Generator:
    """A random number generator with its own state (seed, offset), which each call with ``generator=`` advances.

    Such calls do not wait.
    """

    def __init__(self, device=None):
        self.device = _C.device("cpu" if device is None else device)
        if self.device.type not in ("cpu", "cuda", "meta"):
            raise RuntimeError(f"[Generator] expected a device of an engine: cpu, cuda or meta, got {self.device}")
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Restarts the sequence from a seed. Raises RuntimeError unless the seed is an integer, ValueError if it exceeds 64 bits."""
        if isinstance(seed, bool) or not is_int(seed):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._stream_seed = unsigned_seed(seed)
        self._seed: int | None = self._stream_seed  # None: that of the state
        self._state: Tensor | None = None  # (seed, offset) after draws in the engine
        self._client = MT19937(self._seed)  # the state after draws in the client; used if _state is None
        return self

    def seed(self) -> int:
        """Seeds the generator from the system's entropy and returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self._stream_seed

    def initial_seed(self) -> int:
        """Returns the seed that was set last, or that of the state that was restored since, for which it waits."""
        if self._seed is None:
            self._seed = int(self._engine_state()[0]) % 2**64
        return self._seed

    def _engine_state(self) -> Tensor:
        """(seed, offset) as a tensor of two int64."""
        if self._state is None:
            return _C.tensor([_signed(self._stream_seed), self._client.position], dtype=_C.int64)
        return self._state

    def get_state(self) -> Tensor:
        """Returns (seed, offset) as a tensor of two int64."""
        return self._engine_state().clone()

    def set_state(self, _new_state: Tensor) -> Generator:
        """Restores a state returned by get_state.

        Raises:
            RuntimeError: the tensor is not such a state, for example because PyTorch made it.
        """
        check_state("set_state", _new_state)
        self._state = _new_state.clone()
        self._seed = None
        return self

    def draw_in_client(self) -> MT19937:
        """Returns a stream of random numbers for choices in the client, such as a sample order.

        Its draws advance the generator. Waits for the state if the engine has drawn or a state was set before.
        """
        if self._state is not None:
            seed, offset = self._state.tolist()
            self._stream_seed, self._client, self._state = seed % 2**64, MT19937(seed, offset), None
        return self._client

    def __enter__(self) -> Generator:
        if _C.is_tracing():  # a Program's runs would all draw the numbers of the first one
            raise NotImplementedError("[Generator] generator= is not supported in a traced function: draw from the session's generator")
        self._session = _C.ops.get_rng_state()
        _C.ops.set_rng_state(self._engine_state())
        return self

    def __exit__(self, *exc) -> None:
        self._state = _C.ops.get_rng_state()
        _C.ops.set_rng_state(self._session)


class _SessionGenerator(Generator):
    """The generator from which calls without ``generator=`` draw."""

    def __init__(self) -> None:
        self.device = _C.device("cpu")

    def manual_seed(self, seed: int) -> Generator:
        """torch.manual_seed."""
        _random.manual_seed(seed)
        return self

    def seed(self) -> int:
        """torch.seed."""
        return _random.seed()

    def initial_seed(self) -> int:
        """torch.initial_seed."""
        return _random.initial_seed()

    def get_state(self) -> Tensor:
        """torch.get_rng_state."""
        return _random.get_rng_state()

    def set_state(self, state: Tensor) -> Generator:
        """torch.set_rng_state."""
        _random.set_rng_state(state)
        return self

    def draw_in_client(self):
        """A Python generator for random choices in the client."""
        return _random.draw_in_client()

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *exc) -> None:
        pass


default_generator = _SessionGenerator()


def manual_seed(seed: int) -> Generator:
    """Restarts the session's generator from a seed; after connect_all(), that of each session. Returns that generator."""
    return default_generator.manual_seed(seed)


def _is_number(*values) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


# PyTorch's checks of distributions' parameters that are numbers.


def _check_normal(mean=0.0, std=1.0, *_, **__) -> None:
    if _is_number(std) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _check_normal_(self, mean=0.0, std=1.0, **_) -> None:
    _check_normal(mean, std)


def _check_log_normal_(self, mean=1.0, std=2.0, **_) -> None:
    if _is_number(std) and not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")


def _check_uniform_(self, from_=0.0, to=1.0, **kwargs) -> None:
    from_ = kwargs.get("from", from_)
    if _is_number(from_, to) and not from_ <= to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")


def _check_exponential_(self, lambd=1.0, **_) -> None:
    if _is_number(lambd) and not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")


def _check_cauchy_(self, median=0.0, sigma=1.0, **_) -> None:
    if _is_number(sigma) and not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")


def _check_bernoulli(self=None, p=None, **_) -> None:
    if _is_number(p) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


_CHECKS = {
    "normal": _check_normal, "normal_": _check_normal_, "log_normal_": _check_log_normal_, "uniform_": _check_uniform_,
    "exponential_": _check_exponential_, "cauchy_": _check_cauchy_, "bernoulli": _check_bernoulli, "bernoulli_": _check_bernoulli,
}  # fmt: skip


def with_generator(function):
    """Adds ``generator=`` to a function that draws from the session's generator."""
    check = _CHECKS.get(function.__name__)

    @functools.wraps(function)
    def draw(*args, generator: Generator | None = None, **kwargs):
        if args and isinstance(args[-1], Generator):
            *args, generator = args
        if check is not None:
            check(*args, **kwargs)
        if generator is None:
            return function(*args, **kwargs)
        with generator:
            return function(*args, **kwargs)

    draw.added_keyword = "generator=None"  # for tools that read signatures
    return draw


def bernoulli(input: Tensor, p: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Draws 0 or 1 for each element, 1 with the probability in input or, if it is given, with probability p."""
    drawn = _C.torch.bernoulli(input if p is None else _C.torch.full_like(input, p))
    if out is None:
        return drawn
    if out.shape != drawn.shape:
        out.resize_(list(drawn.shape))
    return out.copy_(drawn)  # of any dtype, as in PyTorch


_draw_bernoulli = Tensor.bernoulli_


def bernoulli_(self: Tensor, p: float | Tensor = 0.5) -> Tensor:
    """Sets each element to 1 with probability p, or with the probability in the tensor p, otherwise to 0."""
    if not isinstance(p, Tensor):
        return _draw_bernoulli(self, p)
    if not p.is_floating_point():
        raise RuntimeError(f"bernoulli_ expects a floating-point tensor of probabilities, got {p.dtype}")
    return self.copy_(_C.torch.bernoulli(p.expand(self.shape)))


_OVERLOADS = {
    "poisson": ("input, generator=None",),
    "binomial": ("count, prob, generator=None",),
    "bernoulli": ("input, *, generator=None, out=None", "input, p, *, generator=None"),
    "random_": (
        "*, generator=None", "to, *, generator=None", "from_, to, *, generator=None",
    ),
}  # fmt: skip
drawing_functions = {
    name: with_generator(bernoulli if name == "bernoulli" else getattr(_C.torch, name))
    for name in (
        "rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "binomial", "rand_like",
        "randn_like",
    )
}  # fmt: skip
for _name in (
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_", "random_",
    "uniform_",
):  # fmt: skip
    _function = {"bernoulli": bernoulli, "bernoulli_": bernoulli_}.get(_name) or getattr(Tensor, _name)
    setattr(Tensor, _name, with_generator(_function))
for _name, _rows in _OVERLOADS.items():
    for _function in (drawing_functions.get(_name), getattr(Tensor, _name, None)):
        if hasattr(_function, "added_keyword"):
            _function.__overloads__ = _rows

set_module("teletensor._C", Generator)
