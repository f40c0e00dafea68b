"""Rprop (Riedmiller and Braun 1993)."""

from __future__ import annotations

from .. import _C
from ._options import check_lr
from ._per_parameter import PerParameterOptimizer
from ._stateless import STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["Rprop", "rprop"]


class Rprop(PerParameterOptimizer):
    """Uses only the signs of the gradients (Riedmiller and Braun 1993)."""

    _recorded_options = ()

    def __init__(
        self, params, lr: float = 1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
        maximize: bool = False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        require_non_negative({"learning rate": lr})
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        })  # fmt: skip

    def _start(self, group, p, state):
        state["prev"] = _C.torch.zeros_like(p)
        lr = float(group["lr"])
        state["step_size"] = _C.torch.full_like(p, complex(lr, lr) if p.is_complex() else lr).detach()

    def _coefficients(self, group, state):
        return *map(float, group["etas"]), *map(float, group["step_sizes"])

    def _step(self, group, p, grad, state, less, more, lower, upper):
        sign_product = grad * state["prev"]
        factor = _C.torch.ones_like(grad).masked_fill(sign_product > 0, more).masked_fill(sign_product < 0, less)
        size = state["step_size"].mul_(factor).clamp_(lower, upper)
        grad = grad.masked_fill(sign_product < 0, 0.0)
        p.sub_(grad.sign() * size)
        state["prev"].copy_(grad)


rprop = stateless(
    Rprop, "rprop", {"prevs": "prev", "step_sizes": "step_size", **STEPS},
    flags("foreach capturable maximize differentiable has_complex"),
    ("step_size_min", "step_size_max", "etaminus", "etaplus"),
)  # fmt: skip
