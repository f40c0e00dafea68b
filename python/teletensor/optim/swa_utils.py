"""Averaged weights (Izmailov et al., "Averaging weights leads to wider optima", 2018)."""

from __future__ import annotations

import copy
import math

from .. import _C
from .._grad_mode import no_grad
from ..nn import Module
from ._scheduler import LRScheduler, per_group, require_optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip


def _require_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999):
    """Returns a function that computes an exponential moving average, for AveragedModel(avg_fn=)."""
    _require_decay(decay)

    @no_grad
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """Returns a function that computes the mean, for AveragedModel(avg_fn=)."""

    @no_grad
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999):
    """Returns a function that updates exponential moving averages in place, for AveragedModel(multi_avg_fn=)."""
    _require_decay(decay)

    @no_grad
    def ema_update(ema_param_list, current_param_list, _):
        for average, current in zip(ema_param_list, current_param_list):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """Returns a function that updates means in place, for AveragedModel(multi_avg_fn=)."""

    @no_grad
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, current in zip(averaged_param_list, current_param_list):
            average.copy_(average + (current - average) / (num_averaged + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of a model. Its parameters are averages of the model's parameters over time."""

    def __init__(self, model: Module, device=None, avg_fn=None, multi_avg_fn=None, use_buffers: bool = False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self._count = 0  # value of n_averaged, stored in the client so that reading does not wait
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def load_state_dict(self, state_dict, *args, **kwargs):
        result = super().load_state_dict(state_dict, *args, **kwargs)
        self._count = int(self.n_averaged)
        return result

    @no_grad
    def update_parameters(self, model: Module) -> None:
        """Adds the model's current parameters to the averages."""
        chain = lambda m: [*m.parameters(), *(m.buffers() if self.use_buffers else ())]  # noqa: E731
        together: dict[tuple, tuple[list, list]] = {}  # for multi_avg_fn: tensors grouped by device and dtype
        for mine, other in zip(chain(self.module), chain(model)):
            mine, other = mine.detach(), other.detach().to(mine.device)
            if self._count == 0:
                mine.copy_(other)
            elif self.multi_avg_fn is not None:
                averaged, current = together.setdefault((str(mine.device), mine.dtype), ([], []))
                averaged.append(mine)
                current.append(other)
            elif self.avg_fn is not None:
                mine.copy_(self.avg_fn(mine, other, self._count))
            elif mine.is_floating_point() or mine.is_complex():
                mine.lerp_(other, 1 / (self._count + 1))
            else:
                mine.copy_(mine + (other - mine) / (self._count + 1))
        for averaged, current in together.values():
            self.multi_avg_fn(averaged, current, self._count)
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(other.detach())
        self._count += 1
        self.n_averaged.add_(1)


@no_grad
def update_bn(loader, model: Module, device=None) -> None:
    """Recomputes the statistics of batch norms from all batches."""
    from ..nn.modules.batchnorm import _BatchNorm

    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    was_training = model.training
    model.train()
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rate to swa_lr and keeps it there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        require_optimizer(optimizer)
        for group, rate in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = rate
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _anneal_fraction(self, step: int) -> float:
        """The position of the rate between the initial rate (0) and swa_lr (1)."""
        fraction = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * fraction)) / 2 if self._anneal_strategy == "cos" else fraction

    def get_lr(self):
        # Recovers the initial rate from the current one, which another scheduler may have changed.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._anneal_fraction(step - 1), self._anneal_fraction(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, rate = group["lr"], group["swa_lr"]
            start = rate if before == 1 else (lr - before * rate) / (1 - before)
            rates.append(rate * now + start * (1 - now))
        return rates
