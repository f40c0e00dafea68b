"""torch.ao.pruning.scheduler.cubic_scheduler: levels that rise quickly at first (arXiv:1710.01878)."""

from __future__ import annotations

from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """Raises the levels to those of the sparsifier by a cubic function of the epoch.

    Args:
        init_sl: the first level.
        init_t: the epoch at which it starts to rise.
        delta_t, total_t: the epochs of a step, and the number of steps.
        initially_zero: the level is 0 before ``init_t``.
    """

    def __init__(
        self, sparsifier: BaseSparsifier, init_sl: Any = 0.0, init_t: Any = 0, delta_t: Any = 10, total_t: Any = 100,
        initially_zero: Any = False, last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        self.sparsifier = sparsifier
        values = (init_sl, init_t, delta_t, total_t, initially_zero)
        self.init_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero = map(self._make_sure_a_list, values)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False) -> float:
        """The level at epoch ``t`` between ``s_0`` and ``s_f``."""
        if initially_zero and t < t_0:
            return 0
        level = s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3
        return max(s_0, min(s_f, level))

    def get_sl(self) -> list[float]:
        """The levels of the current epoch."""
        self._check_within_step()
        columns = (self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero)
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, start, epochs, steps, zero)
            for first, last, start, epochs, steps, zero in zip(*columns, strict=True)
        ]
