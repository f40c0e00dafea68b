"""Adadelta (Zeiler, "Adadelta: an adaptive learning rate method", 2012)."""

from __future__ import annotations

from .. import _C
from ._options import check_lr
from ._per_parameter import PerParameterOptimizer
from ._stateless import STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["Adadelta"]


class Adadelta(PerParameterOptimizer):
    """Adadelta (Zeiler, "Adadelta: an adaptive learning rate method", 2012)."""

    def __init__(
        self, params, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, foreach=None, *,
        capturable=False, maximize: bool = False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        require_non_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        })  # fmt: skip

    def _start(self, group, p, state):
        state["square_avg"], state["acc_delta"] = _C.torch.zeros_like(p), _C.torch.zeros_like(p)

    def _step(self, group, p, grad, state):
        rho, eps = group["rho"], group["eps"]
        squares = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = state["acc_delta"].add(eps).sqrt().div(squares.add(eps).sqrt()).mul(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-float(group["lr"]))


adadelta = stateless(
    Adadelta, "adadelta", {"square_avgs": "square_avg", "acc_deltas": "acc_delta", **STEPS},
    flags("capturable foreach differentiable has_complex"), ("lr", "rho", "eps", "weight_decay", "maximize"),
)  # fmt: skip
