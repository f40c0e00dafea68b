"""Adadelta (Zeiler, "Adadelta: an adaptive learning rate method", 2012)."""

from __future__ import annotations

from .. import _C
from ._options import check_lr, recorded_rate
from ._per_parameter import PerParameterOptimizer
from ._scaled import add_, addcmul_
from ._stateless import STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["Adadelta", "adadelta"]


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

    def _coefficients(self, group, state):
        return group["rho"], 1 - group["rho"], group["eps"], -recorded_rate(group)

    def _step(self, group, p, grad, state, rho, part, eps, rate):
        squares = addcmul_(state["square_avg"].mul_(rho), grad, grad, part)
        delta = state["acc_delta"].add(eps).sqrt().div(squares.add(eps).sqrt()).mul(grad)
        addcmul_(state["acc_delta"].mul_(rho), delta, delta, part)
        add_(p, delta, rate)


adadelta = stateless(
    Adadelta, "adadelta", {"square_avgs": "square_avg", "acc_deltas": "acc_delta", **STEPS},
    flags("capturable foreach differentiable has_complex"), ("lr", "rho", "eps", "weight_decay", "maximize"),
)  # fmt: skip
