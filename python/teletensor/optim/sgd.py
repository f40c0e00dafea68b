"""Stochastic gradient descent, with momentum (Sutskever et al. 2013) and Nesterov momentum."""

from __future__ import annotations

from .. import _C
from .optimizer import Optimizer, implementation


class SGD(Optimizer):
    """v = momentum v + (1 - dampening) (g + weight_decay p), then p = p - lr v; see torch.optim.SGD."""

    def __init__(
        self, params, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach=None, differentiable=False, fused=None,
    ):  # fmt: skip
        for name, value in (("learning rate", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"Invalid {name} value: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
            **implementation(foreach=foreach, differentiable=differentiable, fused=fused),
        })  # fmt: skip

    def _update(self, group, params, grads) -> None:
        options = {k: group[k] for k in ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")}
        options["lr"] = float(options["lr"])
        if group["momentum"] == 0:
            _C.ops.sgd_step(params, grads, [], first_step=False, **options)
            return
        # A parameter's first step initialises its momentum to its gradient.
        fresh = [p for p in params if "momentum_buffer" not in self.state[p]]
        for p in fresh:
            self.state[p]["momentum_buffer"] = _C.torch.empty_like(p)
        started = set(map(id, fresh))
        for first in (True, False):
            selected = [(p, g) for p, g in zip(params, grads) if (id(p) in started) == first]
            if selected:
                ps, gs = zip(*selected)
                buffers = [self.state[p]["momentum_buffer"] for p in ps]
                _C.ops.sgd_step(ps, gs, buffers, first_step=first, **options)
