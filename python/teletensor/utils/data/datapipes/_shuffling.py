"""What the two pipes named Shuffler share: the switch, and the seed of an iteration."""

from __future__ import annotations

import random
from typing import Any

from .... import _C


class Shuffling:
    """A mix-in before the class of the pipe."""

    _enabled = True
    _seed: int | None = None  # of the next iteration
    seeds: random.Random | None = None  # of iterations without set_seed(); None: torch's generator

    def set_shuffle(self, shuffle: bool = True) -> Any:
        """Switches shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Any:
        """Sets the seed of the next iteration."""
        self._seed = seed
        return self

    def _take_seed(self) -> int:
        """The seed of the iteration that begins."""
        seed, self._seed = self._seed, None
        if seed is None:
            seed = int(_C.torch.randint(0, 2**62, ()).item()) if self.seeds is None else self.seeds.getrandbits(62)
        return seed
