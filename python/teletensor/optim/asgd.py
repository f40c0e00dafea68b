"""Averaged stochastic gradient descent (Polyak and Juditsky 1992)."""

from __future__ import annotations

from .. import _C
from .adaptive import _PerParameterOptimizer
from .optimizer import implementation, require_non_negative

__all__ = ["ASGD"]


class ASGD(_PerParameterOptimizer):
    """SGD with a decreasing rate; state["ax"] is the mean of the parameters after t0 steps."""

    def __init__(
        self, params, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
        foreach=None, maximize: bool = False, differentiable=False, capturable=False,
    ):  # fmt: skip
        require_non_negative({"learning rate": lr, "weight_decay value": weight_decay})
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        })  # fmt: skip

    def _start(self, group, p, state):
        state["eta"], state["mu"], state["ax"] = float(group["lr"]), 1.0, _C.torch.zeros_like(p)

    def _step(self, group, p, grad, state):
        p.mul_(1 - group["lambd"] * state["eta"]).add_(grad, alpha=-state["eta"])
        if state["mu"] == 1:
            state["ax"].copy_(p)
        else:
            state["ax"].lerp_(p, state["mu"])
        state["eta"] = float(group["lr"]) / (1 + group["lambd"] * float(group["lr"]) * state["step"]) ** group["alpha"]
        state["mu"] = 1 / max(1, state["step"] - group["t0"])
