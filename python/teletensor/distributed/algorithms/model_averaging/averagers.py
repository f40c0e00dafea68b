"""Averages of the ranks' models in some of the steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..._process_group import ProcessGroup
from ..._world import _group_or_default_group
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]

IS_NOT_USEFUL = (
    "When the maximum period is 1, no need to use model averaging because the communication cost of all-reducing "
    "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the backward pass. "
    "Therefore, only DistributedDataParallel should be used for this case."
)


class ModelAverager(ABC):
    """Base class of averagers. `step` counts the calls of average_parameters().

    Args:
        process_group: the ranks; by default the group of init_process_group().
    """

    def __init__(self, process_group: ProcessGroup | None = None):
        self.process_group = _group_or_default_group(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable) -> None:
        """Averages parameters or parameter groups, if this step averages."""


class PeriodicModelAverager(ModelAverager):
    """Averages the ranks' parameters in every `period`-th step, beginning with step `warmup_steps`.

    Raises:
        ValueError: `period` is not positive, or `warmup_steps` is negative.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None):
        super().__init__(process_group)
        check_warmup(warmup_steps)
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(IS_NOT_USEFUL, stacklevel=2)
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable) -> None:
        """Averages the parameters that have a gradient, if this step averages."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1


def check_warmup(warmup_steps: int) -> None:
    """Raises ValueError for a negative number."""
    if warmup_steps < 0:
        raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
