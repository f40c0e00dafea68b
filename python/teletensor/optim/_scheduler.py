"""LRScheduler: the base of all learning rate schedulers."""

from __future__ import annotations

import types
import warnings
from typing import Any, Callable

from .._C import Tensor
from .._lazy import set_module
from .optimizer import Optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list:
    """Returns one value per parameter group, from a list or tuple with one value per group or from one common value."""
    if not isinstance(value, (list, tuple)):
        value = [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has "
            f"{len(optimizer.param_groups)}."
        )
    return [v.clone() if isinstance(v, Tensor) else v for v in value]


def values_of(optimizer: Optimizer, key: str) -> list:
    """The values of an option, one per group; tensors are copied."""
    return per_group(key, optimizer, [group[key] for group in optimizer.param_groups])


def set_value(group: dict, key: str, value: Any) -> None:
    """Sets an option; a tensor is filled in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def require_optimizer(optimizer: Any) -> None:
    """Raises TypeError unless the argument is an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Sets every group's ``lr`` at each step(); subclasses define the values.

    get_lr() computes the rates from the current rates, so that several schedulers of one optimizer can be combined.
    _get_closed_form_lr(), if defined, computes the rates from ``base_lrs`` and is used by step(epoch).
    """

    _is_initial = False  # true during the constructor's step
    _get_lr_called_within_step = False  # part of PyTorch's state dicts
    _needs_metric = False  # step() requires a metric: not allowed in SequentialLR and ChainedScheduler

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0."
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial, self._get_lr_called_within_step = True, False
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list:
        """The rates for ``last_epoch``, one per group."""
        raise NotImplementedError

    def get_last_lr(self) -> list:
        """The rates of the last step()."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advances by one epoch, or (deprecated) to the given epoch."""
        self._step_count += 1
        if epoch is not None:
            warn_epoch_deprecated()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._get_lr_called_within_step = True  # part of PyTorch's state
        try:
            self._set_lr(self.get_lr() if closed is None else closed())
        finally:
            self._get_lr_called_within_step = False

    def _set_lr(self, rates: list) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def _lr(self) -> list:
        return values_of(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict:
        """All attributes except the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Restores a state returned by state_dict."""
        self.__dict__.update(state_dict)


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. With an epoch the closed form is used instead of the chainable form, where available."
)


def warn_epoch_deprecated() -> None:
    """Warns that step()'s argument is deprecated."""
    warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=3)


class LambdaSchedulerBase(LRScheduler):
    """The base of schedulers with functions of the epoch; state_dict contains the attributes of callable objects."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | list[Callable], last_epoch: int = -1):
        require_optimizer(optimizer)
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(functions) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(functions)}")
        for function in functions:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict:
        state = super().state_dict()
        state["lr_lambdas"] = [None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                function.__dict__.update(attributes)


class CompositeScheduler(LRScheduler):
    """The base of schedulers that step other schedulers of one optimizer; state_dict contains their states."""

    def _set_schedulers(self, optimizer: Optimizer | None, schedulers: list) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if getattr(scheduler, "_needs_metric", False):
                raise ValueError(
                    f"{name} does not support `{type(scheduler).__name__}` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} of another one."
                )
        self.optimizer, self._schedulers = optimizer, schedulers

    def state_dict(self) -> dict:
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


set_module("teletensor.optim.lr_scheduler", LRScheduler)
