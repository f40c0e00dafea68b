"""Averaged stochastic gradient descent (Polyak and Juditsky 1992)."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from ._options import as_saved, check_lr
from ._per_parameter import PerParameterOptimizer
from ._scaled import add_, lerp, select
from ._stateless import COMMON, STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["ASGD", "asgd"]


class ASGD(PerParameterOptimizer):
    """SGD with a decreasing rate; state["ax"] is the mean of the parameters after t0 steps."""

    _recorded_options = ()

    _numbers = ("step", "eta", "mu")

    def __init__(
        self, params, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
        foreach=None, maximize: bool = False, differentiable=False, capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        require_non_negative({
            "learning rate": lr, "lambd value": lambd, "alpha value": alpha, "weight_decay value": weight_decay,
        })  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        })  # fmt: skip

    def _start(self, group, p, state):
        state["eta"], state["mu"], state["ax"] = as_saved(float(group["lr"])), 1.0, _C.torch.zeros_like(p)

    def _coefficients(self, group, state):
        eta, mu, lr = state["eta"], state["mu"], float(group["lr"])
        state["eta"] = as_saved(lr / (1 + group["lambd"] * lr * state["step"]) ** group["alpha"])
        state["mu"] = as_saved(1 / max(1, state["step"] - group["t0"]))
        return 1 - group["lambd"] * eta, -eta, mu, float(mu == 1)

    def _step(self, group, p, grad, state, shrinking, rate, mu, is_first):
        add_(p.mul_(shrinking), grad, rate)
        if isinstance(is_first, Tensor):
            mean = state["ax"]
            mean.copy_(select(is_first, p, lerp(mean, p, mu)))
        elif is_first:
            state["ax"].copy_(p)
        else:
            state["ax"].lerp_(p, mu)


asgd = stateless(
    ASGD, "asgd", {"axs": "ax", "mus": "mu", "etas": "eta", **STEPS}, flags(COMMON),
    ("lambd", "lr", "t0", "alpha", "weight_decay"),
)  # fmt: skip
