"""RAdam (Liu et al., "On the variance of the adaptive learning rate", 2019)."""

from __future__ import annotations

import math

from .._C import Tensor
from ._options import recorded_rate
from ._per_parameter import AdamVariant
from ._scaled import add, add_, addcdiv, addcdiv_, select
from ._stateless import MOMENTS, STEPS, flags, stateless
from .optimizer import implementation

__all__ = ["RAdam", "radam"]


class RAdam(AdamVariant):
    """Adam with rectified variance (Liu et al., "On the variance of the adaptive learning rate", 2019)."""

    def __init__(
        self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach=None, maximize: bool = False, capturable=False, differentiable=False,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        )  # fmt: skip

    def _coefficients(self, group, state):
        step, (beta1, beta2), lr = state["step"], group["betas"], recorded_rate(group)
        common = 1 - beta1, beta2, 1 - beta2, group["eps"]
        longest = 2 / (1 - beta2) - 1
        correction = 1 - beta2**step
        length = longest - 2 * step * beta2**step / correction
        rate = lr / (1 - beta1**step)
        if length <= 5:
            return *common, 0.0, -rate
        part = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        return *common, 1.0, -rate * math.sqrt(part * correction)

    def _step(self, group, p, grad, state, part1, beta2, part2, eps, is_rectified, rate):
        mean, squares = self._moments(grad, state, part1, beta2, part2)
        if isinstance(is_rectified, Tensor):
            rectified = addcdiv(p, mean, squares.sqrt().add(eps), rate)
            p.copy_(select(is_rectified, rectified, add(p, mean, rate)))
        elif is_rectified:
            addcdiv_(p, mean, squares.sqrt().add(eps), rate)
        else:
            add_(p, mean, rate)


radam = stateless(
    RAdam, "radam", {**MOMENTS, **STEPS},
    flags("decoupled_weight_decay foreach differentiable capturable has_complex maximize"),
    ("beta1", "beta2", "lr", "weight_decay", "eps"),
)  # fmt: skip
