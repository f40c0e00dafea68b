"""RMSprop (Hinton, lecture 6e, 2012)."""

from __future__ import annotations

from .. import _C
from ._options import check_lr, recorded_rate
from ._per_parameter import PerParameterOptimizer, as_kept
from ._scaled import add_, addcdiv_, addcmul_, lerp_
from ._stateless import COMMON, STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(PerParameterOptimizer):
    """RMSprop (Hinton, lecture 6e, 2012).

    `centered`: Graves, "Generating sequences with recurrent neural networks" (2013).
    """

    def __init__(
        self, params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
        centered: bool = False, capturable=False, foreach=None, maximize: bool = False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        limited = {"learning rate": lr, "epsilon value": eps, "momentum value": momentum}
        require_non_negative({**limited, "weight_decay value": weight_decay, "alpha value": alpha})
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
            "maximize": maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        })  # fmt: skip

    def _start(self, group, p, state):
        state["square_avg"] = _C.torch.zeros_like(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _C.torch.zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = _C.torch.zeros_like(p)

    def _coefficients(self, group, state):
        return group["alpha"], 1 - group["alpha"], group["eps"], group["momentum"], -recorded_rate(group)

    def _step(self, group, p, grad, state, alpha, part, eps, momentum, rate):
        squares = addcmul_(state["square_avg"].mul_(alpha), grad, grad, part)
        if group["centered"]:
            mean = as_kept(lerp_(state["grad_avg"], grad, part))
            squares = squares.addcmul(mean, mean, value=-1)
        scale = squares.sqrt().add(eps)
        if group["momentum"] > 0:
            add_(p, as_kept(state["momentum_buffer"].mul_(momentum).addcdiv_(grad, scale)), rate)
        else:
            addcdiv_(p, grad, scale, rate)


rmsprop = stateless(
    RMSprop, "rmsprop", {
        "square_avgs": "square_avg", "grad_avgs": "grad_avg", "momentum_buffer_list": "momentum_buffer", **STEPS,
    }, flags(COMMON), ("lr", "alpha", "eps", "weight_decay", "momentum", "centered"),
)  # fmt: skip
