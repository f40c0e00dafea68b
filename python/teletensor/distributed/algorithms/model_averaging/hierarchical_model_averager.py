"""Averages of the ranks' models over small groups often, and over large ones rarely."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ..._groups import new_subgroups
from ..._process_group import ProcessGroup
from . import utils
from .averagers import IS_NOT_USEFUL, ModelAverager, check_warmup

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages the ranks' parameters over groups of different sizes in different periods, beginning with step
    `warmup_steps`. A step that is a multiple of several periods uses the group of the longest one.

    Args:
        period_group_size_dict: the size of the groups by period, from the shortest period to the longest, whose groups
            have all ranks.
        warmup_steps: the number of steps before the first average.
        process_group: the ranks; by default the group of init_process_group(). All of them must create the averager.

    Raises:
        ValueError: the dict is empty, a period is not positive, or the last size is not that of the group.
    """

    def __init__(
        self,
        period_group_size_dict: dict[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: ProcessGroup | None = None,
    ):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            warnings.warn(IS_NOT_USEFUL, stacklevel=2)
        size = self.process_group.size()
        last = period_group_size_dict[self._periods[-1]]
        if last != size:
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {last} must be equal to the size of arg "
                f"``process_group`` {size}."
            )
        check_warmup(warmup_steps)
        self.warmup_steps = warmup_steps
        self.period_process_group_dict = {
            period: self.process_group if count == size else new_subgroups(count, self.process_group)[0]
            for period, count in period_group_size_dict.items()
        }

    def _find_process_group(self) -> ProcessGroup | None:
        """The group of this step, None if parameters are not averaged."""
        return next((self.period_process_group_dict[p] for p in reversed(self._periods) if self.step % p == 0), None)

    def average_parameters(self, params: Iterable) -> None:
        """Averages the parameters that have a gradient, if this step averages."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
