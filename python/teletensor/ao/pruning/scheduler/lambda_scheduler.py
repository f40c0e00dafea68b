"""torch.ao.pruning.scheduler.lambda_scheduler: levels by functions of the epoch."""

from __future__ import annotations

from collections.abc import Callable

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """Multiplies the sparsifier's levels by functions of the epoch.

    Args:
        sl_lambda: a function, or one per group.
    """

    def __init__(
        self, sparsifier: BaseSparsifier, sl_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self.sparsifier = sparsifier
        self.sl_lambdas = self._make_sure_a_list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """The levels of the current epoch."""
        self._check_within_step()
        return [level * function(self.last_epoch) for function, level in zip(self.sl_lambdas, self.base_sl, strict=True)]
