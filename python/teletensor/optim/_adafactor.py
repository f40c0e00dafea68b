"""Adafactor (Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018)."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._lazy import set_module
from ..linalg import vector_norm
from ._stateless import SCALING, STEPS, stateless
from .optimizer import Optimizer

__all__ = ["Adafactor"]

_norm = vector_norm


class Adafactor(Optimizer):
    """Stores the second moments of matrices as their row and column means. A step does not wait for the engine.

    Args:
        lr: the upper limit of the relative step size.
        beta2_decay: the exponent of the decay of the second moments.
        eps: (eps1, eps2): the lower limits of the second moments (None: the dtype's epsilon) and of the parameters' norms.
        d: the limit of the root mean square of an update.
    """

    _numbers = ("step",)

    def __init__(
        self, params, lr: float = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
        weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ):  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
        })  # fmt: skip

    def _update(self, group, params, grads) -> None:
        lr = float(group["lr"])
        for p, grad in zip(params, grads):
            if p.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            grad, state = -grad.detach() if group["maximize"] else grad.detach(), self.state[p]
            if not state:
                self._start(state, grad)
            state["step"] = int(state["step"]) + 1
            self._step(group, lr, p.detach(), grad, state)

    def _start(self, state: dict, grad: Tensor) -> None:
        state["step"] = 0
        if grad.dim() > 1:
            state["row_var"] = _C.torch.zeros_like(grad[..., :1])
            state["col_var"] = _C.torch.zeros_like(grad[..., :1, :])
        else:
            state["variance"] = _C.torch.zeros_like(grad)

    def _step(self, group: dict, lr: float, p: Tensor, grad: Tensor, state: dict) -> None:
        eps1, eps2 = group["eps"]
        eps1 = _finfo_eps(p) if eps1 is None else eps1
        step = float(state["step"])
        new_part = step ** group["beta2_decay"]
        alpha = (_norm(p) / p.numel() ** 0.5).clamp_min(eps2) * min(lr, 1 / step**0.5)
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            row, column = state["row_var"], state["col_var"]
            row.lerp_(_norm(grad, dim=-1, keepdim=True).square() / grad.shape[-1], new_part)
            column.lerp_(_norm(grad, dim=-2, keepdim=True).square() / grad.shape[-2], new_part)
            variance = (row @ column) / row.mean(-2, keepdim=True).clamp_min(eps1)
        else:
            variance = state["variance"].lerp_(grad * grad, new_part)
        update = variance.clamp_min(eps1 * eps1).rsqrt() * grad
        limit = (_norm(update) / (update.numel() ** 0.5 * group["d"])).clamp_min(1.0)
        p.sub_(update * (alpha / limit))


def _finfo_eps(p: Tensor) -> float:
    from .. import finfo

    return finfo(p.dtype).eps


adafactor = stateless(
    Adafactor, "adafactor", {"row_vars": "row_var", "col_vars": "col_var", "variances": "variance", **STEPS},
    {"foreach": None, **SCALING, "has_complex": False}, ("d", "lr", "beta2_decay", "weight_decay", "eps1", "eps2", "maximize"),
)  # fmt: skip

set_module("teletensor.optim", Adafactor)
