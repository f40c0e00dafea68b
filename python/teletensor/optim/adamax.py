"""Adamax (Kingma and Ba 2014)."""

from __future__ import annotations

from .. import _C
from ._options import recorded_rate
from ._per_parameter import AdamVariant, as_kept
from ._scaled import addcdiv_, lerp_
from ._stateless import COMMON, STEPS, flags, stateless
from .optimizer import implementation

__all__ = ["Adamax", "adamax"]


class Adamax(AdamVariant):
    """Adam with the infinity norm of the gradients (Kingma and Ba 2014)."""

    second = "exp_inf"

    def __init__(
        self, params, lr: float = 2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, foreach=None, *,
        maximize: bool = False, differentiable=False, capturable=False,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, maximize=maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        )  # fmt: skip

    def _coefficients(self, group, state):
        beta1, beta2 = group["betas"]
        return 1 - beta1, beta2, group["eps"], -recorded_rate(group) / (1 - beta1 ** state["step"])

    def _step(self, group, p, grad, state, part, beta2, eps, rate):
        mean = as_kept(lerp_(state["exp_avg"], grad, part))
        largest = state["exp_inf"]
        largest.copy_(_C.torch.maximum(largest * beta2, grad.abs().add(eps)))
        addcdiv_(p, mean, as_kept(largest), rate)


adamax = stateless(
    Adamax, "adamax", {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", **STEPS}, flags(COMMON),
    ("eps", "beta1", "beta2", "lr", "weight_decay"),
)  # fmt: skip
