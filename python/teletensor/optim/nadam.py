"""NAdam (Dozat 2016)."""

from __future__ import annotations

from ._options import as_saved, recorded_rate
from ._per_parameter import AdamVariant
from ._scaled import addcdiv_
from ._stateless import MOMENTS, STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["NAdam", "nadam"]


class NAdam(AdamVariant):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    _numbers = ("step", "mu_product")

    def __init__(
        self, params, lr: float = 2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach=None, maximize: bool = False,
        capturable=False, differentiable=False,
    ):  # fmt: skip
        require_non_negative({"momentum_decay value": momentum_decay})
        super().__init__(
            params, lr, betas, eps, weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        )  # fmt: skip

    def _start(self, group, p, state):
        super()._start(group, p, state)
        state["mu_product"] = 1.0

    def _coefficients(self, group, state):
        step, (beta1, beta2), lr = state["step"], group["betas"], recorded_rate(group)
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = state["mu_product"] = as_saved(state["mu_product"] * mu)
        rates = -lr * (1 - mu) / (1 - product), -lr * following / (1 - product * following)
        return 1 - beta1, beta2, 1 - beta2, 1 - beta2**step, group["eps"], *rates

    def _step(self, group, p, grad, state, part1, beta2, part2, correction, eps, rate, mean_rate):
        mean, squares = self._moments(grad, state, part1, beta2, part2)
        scale = squares.div(correction).sqrt().add(eps)
        addcdiv_(p, grad, scale, rate)
        addcdiv_(p, mean, scale, mean_rate)


nadam = stateless(
    NAdam, "nadam", {**MOMENTS, "mu_products": "mu_product", **STEPS},
    flags("decoupled_weight_decay foreach capturable differentiable has_complex maximize"),
    ("beta1", "beta2", "lr", "weight_decay", "momentum_decay", "eps"),
)  # fmt: skip
