"""Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024)."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._lazy import set_module
from ._stateless import stateless
from .optimizer import Optimizer

__all__ = ["Muon"]

_ADJUSTMENTS = {
    None: lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
    "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns),
}


def _orthogonalized(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """An approximation, in bfloat16, of the nearest matrix with singular values of 1, by Newton-Schulz iterations."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x, tall = matrix.to(_C.bfloat16), matrix.shape[0] > matrix.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp_min(eps)
    for _ in range(steps):
        gram = x @ x.T
        x = _C.torch.addmm(x, _C.torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Optimizer):
    """Momentum whose updates are orthogonalized; for matrices only. Other parameters need another optimizer.

    Args:
        ns_coefficients: the coefficients of the Newton-Schulz polynomial.
        adjust_lr_fn: how the rate depends on a matrix's size: "original" (None), "match_rms_adamw" or "spectral_unclamped".
    """

    def __init__(
        self, params, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _update(self, group, params, grads) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for p, grad in zip(params, grads):
            if p.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            grad, state = grad.detach(), self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = _C.torch.zeros_like(grad)
            average = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = _orthogonalized(
                grad.lerp(average, momentum) if group["nesterov"] else average, group["ns_coefficients"], group["ns_steps"],
                group["eps"],
            )  # fmt: skip
            p = p.detach()
            p.mul_(1 - lr * group["weight_decay"])
            p.sub_(update.to(p.dtype) * (lr * _ADJUSTMENTS[group["adjust_lr_fn"]](*p.shape)))


muon = stateless(
    Muon, "muon", {"muon_momentum_bufs": "momentum_buffer"}, {},
    ("foreach=None", "lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "ns_steps", "eps", "adjust_lr_fn", "has_complex"),
)  # fmt: skip

set_module("teletensor.optim", Muon)
