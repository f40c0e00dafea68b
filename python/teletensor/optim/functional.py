"""torch.optim.functional: one step of an optimizer, in place, on lists of parameters, gradients and states."""

from __future__ import annotations

from ._adafactor import adafactor
from ._muon import muon
from .adadelta import adadelta
from .adagrad import adagrad
from .adam import adam
from .adamax import adamax
from .adamw import adamw
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd
from .sparse_adam import step as sparse_adam_step

__all__ = [
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd", "muon", "nadam", "radam", "rmsprop", "rprop", "sgd",
    "sparse_adam",
]  # fmt: skip


def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize) -> None:
    """One step of SparseAdam: of parameters with sparse gradients; `state_steps` are the numbers of the steps."""
    for param, grad, mean, square, number in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        sparse_adam_step(param, grad, mean, square, int(number), eps=eps, beta1=beta1, beta2=beta2, lr=lr, maximize=maximize)
