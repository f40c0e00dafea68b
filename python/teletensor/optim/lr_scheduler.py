"""Learning rates over time: each scheduler says the rate of a group as a function of the step."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Callable

from .optimizer import Optimizer


class LRScheduler:
    """Sets every group's ``lr`` at each step(); subclasses say to what."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1, verbose=False):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The rates for ``last_epoch``, one a group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates in force."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Goes on by one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, lr in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = lr

    def state_dict(self) -> dict:
        """Everything but the optimizer and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes over what state_dict gave."""
        self.__dict__.update(state_dict)


_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    """initial lr times a function of the epoch."""

    def __init__(self, optimizer, lr_lambda: Callable | list[Callable], last_epoch=-1, verbose=False):
        many = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas = list(lr_lambda) if many else [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict:
        return {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}


class StepLR(LRScheduler):
    """Times gamma every step_size epochs."""

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch=-1, verbose=False):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone."""

    def __init__(self, optimizer, milestones: list[int], gamma: float = 0.1, last_epoch=-1, verbose=False):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * self.gamma ** bisect_right(self.milestones, self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer, gamma: float, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that grows linearly over total_iters."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1, verbose=False):
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        part = min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to eta_min (Loshchilov and Hutter 2016)."""

    def __init__(self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch=-1, verbose=False):  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        cosine = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * cosine for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up to max_lr and down again (Smith and Topin 2017); momentum is left alone."""

    def __init__(
        self, optimizer, max_lr: float, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
        anneal_strategy="cos", cycle_momentum=False, div_factor=25.0, final_div_factor=1e4, last_epoch=-1, **ignored,
    ):  # fmt: skip
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        self.total_steps = total_steps or epochs * steps_per_epoch
        self.max_lr, self.pct_start, self.anneal = max_lr, pct_start, anneal_strategy
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        weight = (1 + math.cos(math.pi * part)) / 2 if self.anneal == "cos" else 1 - part
        return end + (start - end) * weight

    def get_lr(self):
        peak = max(1.0, self.pct_start * self.total_steps - 1)
        low = self.max_lr / self.div_factor
        if self.last_epoch <= peak:
            lr = self._between(low, self.max_lr, self.last_epoch / peak)
        else:
            part = min(1.0, (self.last_epoch - peak) / max(1.0, self.total_steps - 1 - peak))
            lr = self._between(self.max_lr, low / self.final_div_factor, part)
        return [lr] * len(self.base_lrs)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines that begin again after T_0 epochs, then T_mult times as many (Loshchilov and Hutter 2016)."""

    def __init__(self, optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch=-1, verbose=False):  # noqa: N803
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(f"Expected positive integer T_0 and T_mult >= 1, but got {T_0} and {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        at, length = self.last_epoch, self.T_0
        while at >= length:
            at, length = at - length, length * self.T_mult
        cosine = (1 + math.cos(math.pi * at / length)) / 2
        return [self.eta_min + (base - self.eta_min) * cosine for base in self.base_lrs]


class CyclicLR(LRScheduler):
    """Between two rates, up and down (Smith 2015); momentum is left alone unless cycle_momentum says otherwise."""

    def __init__(
        self, optimizer, base_lr: float, max_lr: float, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn=None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch=-1, verbose=False,
    ):  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.low, self.high = base_lr, max_lr
        self.up, self.down = step_size_up, step_size_up if step_size_down is None else step_size_down
        scales = {
            "triangular": lambda x: 1.0, "triangular2": lambda x: 1 / 2.0 ** (x - 1), "exp_range": lambda x: gamma**x,
        }  # fmt: skip
        self.scale = scale_fn or scales[mode]
        self.by_cycle = scale_mode == "cycle" if scale_fn else mode != "exp_range"
        self.cycle_momentum, self.momenta = cycle_momentum, (base_momentum, max_momentum)
        if cycle_momentum and not any(k in optimizer.defaults for k in ("momentum", "betas")):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        total = self.up + self.down
        cycle, place = math.floor(1 + self.last_epoch / total), self.last_epoch % total
        height = place / self.up if place <= self.up else (total - place) / self.down
        part = height * self.scale(cycle if self.by_cycle else self.last_epoch)
        if self.cycle_momentum:
            momentum = self.momenta[1] - (self.momenta[1] - self.momenta[0]) * part
            for group in self.optimizer.param_groups:
                if "momentum" in group:
                    group["momentum"] = momentum
                else:
                    group["betas"] = (momentum, *group["betas"][1:])
        return [self.low + (self.high - self.low) * part] * len(self.base_lrs)


class ConstantLR(LRScheduler):
    """A factor for the first total_iters epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1, verbose=False):
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * (self.factor if self.last_epoch < self.total_iters else 1) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Falls to 0 over total_iters epochs, by a power."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1, verbose=False):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        left = 1 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class MultiplicativeLR(LRScheduler):
    """Times a function of each epoch."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1, verbose=False):
        many = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas = list(lr_lambda) if many else [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [lr * f(self.last_epoch) for lr, f in zip(rates, self.lr_lambdas)] if self.last_epoch > 0 else rates


class SequentialLR(LRScheduler):
    """One scheduler after the other, each from its milestone."""

    def __init__(self, optimizer, schedulers, milestones: list[int], last_epoch=-1, verbose=False):
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points"
            )
        self.optimizer, self._schedulers, self._milestones = optimizer, schedulers, milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0].step()

    def step(self, epoch=None) -> None:
        """Goes on by one."""
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        if which > 0 and self._milestones[which - 1] == self.last_epoch:
            self._schedulers[which].step(0)
        else:
            self._schedulers[which].step()

    def state_dict(self) -> dict:
        """Everything but the optimizer; of the schedulers their states."""
        return {"last_epoch": self.last_epoch, "schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes over what state_dict gave."""
        self.last_epoch = state_dict["last_epoch"]
        for scheduler, state in zip(self._schedulers, state_dict["schedulers"]):
            scheduler.load_state_dict(state)


class ReduceLROnPlateau:
    """Lowers the rate when a metric has stopped improving."""

    def __init__(
        self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
        min_lr=0.0, eps=1e-8, verbose=False,
    ):  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" and math.isfinite(self.best) else 1)
        return sign * (value - self.best) > margin if math.isfinite(self.best) else value != self.best

    def step(self, metrics) -> None:
        """Takes the metric's newest value (a tensor is waited for)."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                lowered = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - lowered > self.eps:
                    group["lr"] = lowered
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """The rates in force."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes over what state_dict gave."""
        self.__dict__.update(state_dict)
