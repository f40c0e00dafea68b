"""The bases of optimizers whose step is a few instructions per parameter."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from ._options import check_lr
from .optimizer import Optimizer, require_non_negative


class PerParameterOptimizer(Optimizer):
    """The base of optimizers whose step is a few instructions per parameter. A step waits only if lr is a tensor.

    With differentiable=True the step is recorded for gradients.
    """

    _numbers = ("step",)

    def _update(self, group: dict, params: list[Tensor], grads: list[Tensor]) -> None:
        recorded = bool(group.get("differentiable"))
        for p, grad in zip(params, grads):
            p, owner = (p if recorded else p.detach()), p
            grad = grad if recorded else grad.detach()
            if group.get("maximize"):
                grad = -grad
            state = self.state[owner]
            if "step" not in state:
                state["step"] = 0
                with no_grad():
                    self._start(group, p.detach(), state)
            state["step"] = int(state["step"]) + 1
            grad = self._with_weight_decay(group, p, grad)
            if not p.is_complex():
                self._step(group, p, grad, state)
                continue
            # Real and imaginary parts are independent numbers.
            views = {k: real_view(v) for k, v in state.items()}
            self._step(group, real_view(p), real_view(grad), views)
            state.update({k: v for k, v in views.items() if not isinstance(v, Tensor)})

    def _with_weight_decay(self, group: dict, p: Tensor, grad: Tensor) -> Tensor:
        decay = group.get("weight_decay", 0)
        if not decay:
            return grad
        if group.get("decoupled_weight_decay"):
            p.mul_(1 - float(group["lr"]) * decay)
            return grad
        return grad.add(p, alpha=decay)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        raise NotImplementedError

    def _step(self, group: dict, p: Tensor, grad: Tensor, state: dict) -> None:
        raise NotImplementedError


class AdamVariant(PerParameterOptimizer):
    """The base of Adam's variants: running means of the gradients and of their squares."""

    def __init__(self, params, lr, betas, eps, weight_decay, **options):
        check_lr(lr)
        require_non_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, **options})

    second = "exp_avg_sq"

    def _start(self, group, p, state):
        state["exp_avg"], state[self.second] = _C.torch.zeros_like(p), _C.torch.zeros_like(p)

    def _moments(self, group, grad, state) -> tuple[Tensor, Tensor]:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        return mean, state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)


def real_view(value):
    """A complex tensor as a view with a last dimension of real and imaginary parts; other values unchanged."""
    return _C.torch.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value
