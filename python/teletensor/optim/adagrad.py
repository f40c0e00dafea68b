"""Adagrad (Duchi et al., "Adaptive subgradient methods", 2011)."""

from __future__ import annotations

from .. import _C
from .._sparse.tensor import like
from ._options import check_lr, recorded_rate
from ._per_parameter import PerParameterOptimizer
from ._scaled import addcdiv_
from ._stateless import SCALING, STEPS, flags, stateless
from .optimizer import implementation, require_non_negative

__all__ = ["Adagrad", "adagrad"]


class Adagrad(PerParameterOptimizer):
    """Adagrad (Duchi et al., "Adaptive subgradient methods", 2011)."""

    def __init__(
        self, params, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0,
        eps: float = 1e-10, foreach=None, *, maximize: bool = False, differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        require_non_negative({
            "learning rate": lr, "lr_decay value": lr_decay, "weight_decay value": weight_decay,
            "initial_accumulator_value value": initial_accumulator_value, "epsilon value": eps,
        })  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
            **implementation(foreach=foreach, differentiable=differentiable, fused=fused),
        })  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["step"] = 0
                self._start(group, p, self.state[p])

    def share_memory(self) -> None:
        """Has no effect: the state is in the engine, which all processes can use."""

    def _start(self, group, p, state):
        value = group["initial_accumulator_value"]
        state["sum"] = _C.torch.full_like(p, complex(value, value) if p.is_complex() else value).detach()

    def _update_sparse(self, group, p, grad):
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        if group.get("differentiable") or p.is_complex():
            raise NotImplementedError("[Adagrad] sparse gradients with differentiable=True and of complex parameters are not supported")
        state, grad = self.state[p], grad.detach().coalesce()
        state["step"] = int(state["step"]) + 1
        values = -grad._values() if group.get("maximize") else grad._values()
        rate = float(group["lr"]) / (1 + (state["step"] - 1) * group["lr_decay"])
        state["sum"].add_(like(grad, values * values))
        root = state["sum"].sparse_mask(grad)._values().sqrt().add(group["eps"])
        p.detach().add_(like(grad, values / root), alpha=-rate)

    def _coefficients(self, group, state):
        return -recorded_rate(group) / (1 + (state["step"] - 1) * group["lr_decay"]), group["eps"]

    def _step(self, group, p, grad, state, rate, eps):
        addcdiv_(p, grad, state["sum"].addcmul_(grad, grad).sqrt().add(eps), rate)


adagrad = stateless(
    Adagrad, "adagrad", {"state_sums": "sum", **STEPS},
    {"fused": None, **SCALING, **flags("has_sparse_grad foreach differentiable has_complex")},
    ("lr", "weight_decay", "lr_decay", "eps", "maximize"),
)  # fmt: skip
