"""torch.default_generator: the session's generator as a Generator."""

from __future__ import annotations

from .. import _C, _random
from .._C import Tensor
from .._generator import Generator


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


class AcceleratorError(RuntimeError):
    """An error of a GPU."""
