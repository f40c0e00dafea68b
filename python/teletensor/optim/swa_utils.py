"""Averaged weights (Izmailov et al., "Averaging weights leads to wider optima", 2018)."""

from __future__ import annotations

import copy
import math

from .. import _C
from .._grad_mode import no_grad
from ..nn import Module
from .lr_scheduler import LRScheduler

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "update_bn"]


def get_ema_avg_fn(decay: float = 0.999):
    """An exponential moving average."""
    return lambda averaged, current, num_averaged: decay * averaged + (1 - decay) * current


class AveragedModel(Module):
    """A copy of a model whose parameters are means of the model's."""

    def __init__(self, model: Module, device=None, avg_fn=None, multi_avg_fn=None, use_buffers: bool = False):
        super().__init__()
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self._count = 0  # n_averaged's value, known here so that nothing waits
        self.avg_fn, self.use_buffers = avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def load_state_dict(self, state_dict, *args, **kwargs):
        result = super().load_state_dict(state_dict, *args, **kwargs)
        self._count = int(self.n_averaged)
        return result

    @no_grad
    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the means."""
        chain = lambda m: [*m.parameters(), *(m.buffers() if self.use_buffers else ())]  # noqa: E731
        for mine, other in zip(chain(self.module), chain(model)):
            mine, other = mine.detach(), other.detach().to(mine.device)
            if self._count == 0 or not mine.is_floating_point():
                mine.copy_(other)
            elif self.avg_fn is not None:
                mine.copy_(self.avg_fn(mine, other, self._count))
            else:
                mine.lerp_(other, 1 / (self._count + 1))
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(other.detach())
        self._count += 1
        self.n_averaged.add_(1)


@no_grad
def update_bn(loader, model: Module, device=None) -> None:
    """Computes the statistics of batch norms anew, from all batches."""
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
    """Anneals to a rate and stays there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        groups = optimizer.param_groups
        self.rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        self.anneal_epochs, self.strategy = anneal_epochs, anneal_strategy
        for group, rate in zip(groups, self.rates):
            group["swa_lr"] = rate
        self._from = [group["lr"] for group in groups]
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        part = min(1.0, self.last_epoch / max(1, self.anneal_epochs))
        part = (1 - math.cos(math.pi * part)) / 2 if self.strategy == "cos" else part
        return [rate * part + start * (1 - part) for rate, start in zip(self.rates, self._from)]
