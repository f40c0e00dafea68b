"""torch.ao.pruning.scheduler.base_scheduler: the base class of schedules of sparsity."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any, Callable

from ..sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


def _counted(step: Callable) -> Callable:
    """A bound method that counts its calls in its object's ``_step_count``."""
    if getattr(step, "_with_counter", False):
        return step
    reference, function = weakref.ref(step.__self__), step.__func__

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        owner = reference()
        owner._step_count += 1
        return function(owner, *args, **kwargs)

    counted._with_counter = True
    return counted


class BaseScheduler:
    """Sets the sparsity level of each group of a sparsifier. Subclasses return the levels from get_sl().

    Args:
        last_epoch: the last one of an interrupted training.
        verbose: prints each level.
    """

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch, self.verbose = last_epoch, verbose
        self.sparsifier.step = _counted(self.sparsifier.step)
        self.sparsifier._step_count = self._step_count = 0
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state of state_dict()."""
        self.__dict__.update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The last levels."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The levels of the current epoch, one per group."""
        self._check_within_step()
        raise NotImplementedError

    def _check_within_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=3
            )

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Prints a level if ``is_verbose``."""
        if is_verbose and epoch is None:
            print(f"Adjusting sparsity level of group {group} to {sl:.4e}.")
        elif is_verbose:
            print(f"Epoch {epoch:5d}: adjusting sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Sets the levels of the next epoch. Called after the sparsifier's step()."""
        if self._step_count == 1:
            if not hasattr(self.sparsifier.step, "_with_counter"):
                warnings.warn(
                    "Seems like `sparsifier.step()` has been overridden after sparsity scheduler initialization. Please, make sure to "
                    "call `sparsifier.step()` before `scheduler.step()`.",
                    stacklevel=2,
                )
            elif self.sparsifier._step_count < 1:
                warnings.warn(
                    "Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make sure you run the "
                    "sparsifier.step() BEFORE any calls to the scheduler.step().",
                    stacklevel=2,
                )
        self._step_count += 1
        self.last_epoch += 1
        self._get_sl_called_within_step = True
        try:
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, level) in enumerate(zip(self.sparsifier.groups, levels, strict=False)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, i, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list:
        """A value per group. Raises ValueError for a list of another length."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
