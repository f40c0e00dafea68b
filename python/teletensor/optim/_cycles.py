"""Cyclic schedulers of learning rates and, for two of them, of momentum."""

from __future__ import annotations

import math
import types
from typing import Callable

from .._lazy import set_module
from ._scheduler import LRScheduler, per_group, require_optimizer, set_value
from .optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class _MomentumScheduler(LRScheduler):
    """The base of schedulers that decrease momentum (for Adam, the first beta) while the rate increases."""

    def _start_momentum(self, base, maximal, last_epoch: int) -> tuple[list, list]:
        """Sets the momentum of the first step; returns the lowest and highest momentum of each group."""
        if not any(k in self.optimizer.defaults for k in ("momentum", "betas")):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in self.optimizer.defaults
        lowest = per_group("base_momentum", self.optimizer, base)
        highest = per_group("max_momentum", self.optimizer, maximal)
        if last_epoch == -1:
            for lower, upper, group in zip(lowest, highest, self.optimizer.param_groups):
                self._set_momentum(group, upper)
                group["max_momentum"], group["base_momentum"] = upper, lower
        return lowest, highest

    def _set_momentum(self, group: dict, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


def _phase(end_step: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str) -> dict:
    """A phase of OneCycleLR: its last step, and the keys of group options for the rates and momenta at both ends."""
    return {
        "end_step": end_step, "start_lr": start_lr, "end_lr": end_lr, "start_momentum": start_momentum, "end_momentum": end_momentum,
    }  # fmt: skip


class OneCycleLR(_MomentumScheduler):
    """Increases the rate to max_lr and decreases it again (Smith and Topin 2017); momentum does the opposite."""

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ):  # fmt: skip
        require_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        counts = {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, count in counts.items():
            if not isinstance(count, int) or count <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        self.total_steps = math.prod(counts.values())
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        top, last = pct_start * self.total_steps - 1, self.total_steps - 1
        rise = _phase(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            fall = _phase(2 * pct_start * self.total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            end = _phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum")
            self._schedule_phases = [rise, fall, end]
        else:
            self._schedule_phases = [rise, _phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        if last_epoch == -1:
            for group, highest in zip(optimizer.param_groups, per_group("max_lr", optimizer, max_lr)):
                group["initial_lr"], group["max_lr"] = highest / div_factor, highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal_func(self, start: float, end: float, fraction: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * fraction + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * fraction) + 1)

    def get_lr(self):
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        phases, which = self._schedule_phases, 0
        while step > phases[which]["end_step"] and which < len(phases) - 1:
            which += 1
        first = phases[which - 1]["end_step"] if which > 0 else 0.0
        phase = phases[which]
        fraction = (step - first) / (phase["end_step"] - first)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], fraction))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(start, end, fraction))
        return rates


class CyclicLR(_MomentumScheduler):
    """Alternates between two rates (Smith 2015); momentum does the opposite if cycle_momentum is set."""

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float], step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable | None = None,
        scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9, last_epoch: int = -1,
    ):  # fmt: skip
        require_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The scale of the amplitude in cycle x, or at step x if scale_mode is "iterations"."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        position = 1.0 + self.last_epoch / self.total_size - cycle
        fraction = position / self.step_ratio if position <= self.step_ratio else (position - 1) / (self.step_ratio - 1)
        fraction *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, lower, upper in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, upper - (upper - lower) * fraction)
        return [lower + (upper - lower) * fraction for lower, upper in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict:
        state, function = super().state_dict(), self._scale_fn_custom
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing with restarts (Loshchilov and Hutter 2016).

    The first period has T_0 epochs. Each following period has T_mult times the epochs of the previous period.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1  # noqa: N803
    ):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advances by one epoch, or to the given epoch, which may be fractional: ``step(epoch + batch / batches)``."""
        self._update_lr(epoch)

    def _update_lr(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._set_lr(self.get_lr())


set_module("teletensor.optim.lr_scheduler", CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR)
