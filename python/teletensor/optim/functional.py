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

__all__ = [
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd", "muon", "nadam", "radam", "rmsprop", "rprop", "sgd",
    "sparse_adam",
]  # fmt: skip


def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize) -> None:
    """Raises NotImplementedError: gradients are dense."""
    raise NotImplementedError("sparse_adam: there are no sparse gradients; use adam")
