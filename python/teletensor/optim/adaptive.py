"""Optimizers with adaptive rates: RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam and Rprop."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from ._options import as_float32, check_lr
from .optimizer import Optimizer, implementation, require_non_negative

__all__ = ["Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"]


class _PerParameterOptimizer(Optimizer):
    """The base of optimizers whose step is a few instructions per parameter. A step waits only if lr is a tensor.

    With differentiable=True the step is recorded for gradients.
    """

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


def real_view(value):
    """A complex tensor as a view with a last dimension of real and imaginary parts; other values unchanged."""
    return _C.torch.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


class RMSprop(_PerParameterOptimizer):
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

    def _step(self, group, p, grad, state):
        alpha, lr = group["alpha"], float(group["lr"])
        squares = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            squares = squares.addcmul(mean, mean, value=-1)
        scale = squares.sqrt().add(group["eps"])
        if group["momentum"] > 0:
            p.add_(state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, scale), alpha=-lr)
        else:
            p.addcdiv_(grad, scale, value=-lr)


class Adagrad(_PerParameterOptimizer):
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

    def _step(self, group, p, grad, state):
        lr = float(group["lr"]) / (1 + (state["step"] - 1) * group["lr_decay"])
        p.addcdiv_(grad, state["sum"].addcmul_(grad, grad).sqrt().add(group["eps"]), value=-lr)


class Adadelta(_PerParameterOptimizer):
    """Adadelta (Zeiler, "Adadelta: an adaptive learning rate method", 2012)."""

    def __init__(
        self, params, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, foreach=None, *,
        capturable=False, maximize: bool = False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        require_non_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        })  # fmt: skip

    def _start(self, group, p, state):
        state["square_avg"], state["acc_delta"] = _C.torch.zeros_like(p), _C.torch.zeros_like(p)

    def _step(self, group, p, grad, state):
        rho, eps = group["rho"], group["eps"]
        squares = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = state["acc_delta"].add(eps).sqrt().div(squares.add(eps).sqrt()).mul(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-float(group["lr"]))


class _AdamVariant(_PerParameterOptimizer):
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


class Adamax(_AdamVariant):
    """Adam with the infinity norm of the gradients (Kingma and Ba 2014)."""

    second = "exp_inf"

    def __init__(
        self, params, lr: float = 2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, foreach=None, *,
        maximize: bool = False, differentiable=False, capturable=False,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, maximize=maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        )  # fmt: skip

    def _step(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(_C.torch.maximum(largest * beta2, grad.abs().add(group["eps"])))
        p.addcdiv_(mean, largest, value=-float(group["lr"]) / (1 - beta1 ** state["step"]))


class NAdam(_AdamVariant):
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

    def _step(self, group, p, grad, state):
        step, beta1, lr = state["step"], group["betas"][0], float(group["lr"])
        mean, squares = self._moments(group, grad, state)
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = state["mu_product"] = as_float32(state["mu_product"] * mu)
        scale = squares.div(1 - group["betas"][1] ** step).sqrt().add(group["eps"])
        p.addcdiv_(grad, scale, value=-lr * (1 - mu) / (1 - product))
        p.addcdiv_(mean, scale, value=-lr * following / (1 - product * following))


class RAdam(_AdamVariant):
    """Adam with rectified variance (Liu et al., "On the variance of the adaptive learning rate", 2019)."""

    def __init__(
        self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach=None, maximize: bool = False, capturable=False, differentiable=False,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable),
        )  # fmt: skip

    def _step(self, group, p, grad, state):
        step, (beta1, beta2), lr = state["step"], group["betas"], float(group["lr"])
        mean, squares = self._moments(group, grad, state)
        longest = 2 / (1 - beta2) - 1
        correction = 1 - beta2**step
        length = longest - 2 * step * beta2**step / correction
        rate = lr / (1 - beta1**step)
        if length <= 5:
            p.add_(mean, alpha=-rate)
            return
        part = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        rate *= math.sqrt(part * correction)
        p.addcdiv_(mean, squares.sqrt().add(group["eps"]), value=-rate)


class Rprop(_PerParameterOptimizer):
    """Uses only the signs of the gradients (Riedmiller and Braun 1993)."""

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

    def _step(self, group, p, grad, state):
        (less, more), (lower, upper) = group["etas"], group["step_sizes"]
        sign_product = grad * state["prev"]
        factor = _C.torch.ones_like(grad).masked_fill(sign_product > 0, more).masked_fill(sign_product < 0, less)
        size = state["step_size"].mul_(factor).clamp_(lower, upper)
        grad = grad.masked_fill(sign_product < 0, 0.0)
        p.sub_(grad.sign() * size)
        state["prev"].copy_(grad)
