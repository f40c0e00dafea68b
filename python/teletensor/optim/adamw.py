"""AdamW (Loshchilov and Hutter 2017)."""

from __future__ import annotations

from ._stateless import stateless
from .adam import ADAM_FLAGS, ADAM_OPTIONS, ADAM_STATES, Adam

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam with decoupled weight decay, which does not affect the running means."""

    def __init__(
        self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
        amsgrad: bool = False, *, maximize: bool = False, foreach=None, capturable=False, differentiable=False, fused=None,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def load_state_dict(self, state_dict: dict) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


_adamw = stateless(Adam, "adamw", ADAM_STATES, {**ADAM_FLAGS, "decoupled_weight_decay": True}, ADAM_OPTIONS)


def adamw(*args, **kwargs) -> None:
    """One step of AdamW, in place; waits for the engine, to read the step's number."""
    _adamw(*args, **kwargs)


_signature = _adamw.__signature__
adamw.__signature__ = _signature.replace(
    parameters=[p for n, p in _signature.parameters.items() if n != "decoupled_weight_decay"]
)
