"""Stochastic gradient descent, with momentum (Sutskever et al. 2013) and Nesterov momentum."""

from __future__ import annotations

from .. import _C
from . import _traced
from ._options import check_lr, recorded, recorded_rate
from ._per_parameter import real_view
from ._scaled import add, add_
from ._skipped_steps import are_on, has_own_step
from ._stateless import SCALING, flags, stateless
from .optimizer import Optimizer, implementation, is_sparse, require_non_negative

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """Gradient descent: v = momentum v + (1 - dampening) (g + weight_decay p), then p = p - lr v.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of a group.
        lr: the rate, a number or a tensor.
        momentum: the part of v that is kept; 0: p = p - lr (g + weight_decay p).
        dampening: reduces the part of the gradient in v; the first v is the gradient.
        weight_decay: a multiple of p that is added to g.
        nesterov: whether the step is g + momentum v; requires momentum and no dampening.
        maximize: whether to increase the loss.
        foreach, differentiable, fused: select PyTorch's implementations.

    Raises:
        ValueError: an option is not in its range, or there are no parameters.

    >>> p = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    >>> (p * p).sum().backward()
    >>> torch.optim.SGD([p], lr=0.25).step()
    >>> p.tolist()
    [0.5, -0.5]
    """

    _recorded_options = ("lr", "momentum", "weight_decay")

    def __init__(
        self, params, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach=None, differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        require_non_negative({"learning rate": lr, "momentum value": momentum, "weight_decay value": weight_decay})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
            **implementation(foreach=foreach, differentiable=differentiable, fused=fused),
        })  # fmt: skip

    def _skips_on_device(self, found_inf) -> bool:
        if type(self)._update is not SGD._update or has_own_step(self) or not are_on(self, found_inf.device):
            return False
        if any(p.grad is not None and is_sparse(p.grad) for group in self.param_groups for p in group["params"]):
            return False  # such a step is composed of several operators
        # With dampening, the first step of a momentum differs from later ones, and only the engine knows which is the first.
        return not any(
            group["momentum"] and group["dampening"] and self.state[p].get("momentum_buffer") is None
            for group in self.param_groups
            for p in group["params"]
            if p.grad is not None
        )

    def _update(self, group, params, grads) -> None:
        if group["differentiable"]:
            for p, grad in zip(params, grads):
                self._record(group, p, grad)
            return
        grads = [real_view(g.detach()) if g.is_complex() else g for g in grads]
        options = {k: group[k] for k in ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")}
        options["lr"] = float(options["lr"])
        found_inf = options["found_inf"] = self.__dict__.get("found_inf")
        if group["momentum"] == 0:
            _C.ops.sgd_step([_real(p) for p in params], grads, [], first_step=False, **options)
            return
        # A parameter's first step initialises its momentum to its gradient.
        fresh = [p for p in params if self.state[p].get("momentum_buffer") is None]
        for p in fresh:
            empty = _C.torch.empty_like if found_inf is None else _C.torch.zeros_like
            self.state[p]["momentum_buffer"] = empty(p)
        # The engine may skip the step, so it starts from zeros, which gives the same result without dampening.
        started = set(map(id, fresh)) if found_inf is None else set()
        for first in (True, False):
            selected = [(p, g) for p, g in zip(params, grads) if (id(p) in started) == first]
            if selected:
                ps, gs = zip(*selected)
                buffers = [real_view(self.state[p]["momentum_buffer"]) for p in ps]
                _C.ops.sgd_step([_real(p) for p in ps], gs, buffers, first_step=first, **options)

    def _update_sparse(self, group, p, grad) -> None:
        if self.__dict__.get("found_inf") is not None:
            raise NotImplementedError("[SGD] a step of sparse gradients that the engine may skip (GradScaler) is not supported")
        # A sparse parameter itself: a sum replaces its components, not those of detach().
        self._record(group, p if is_sparse(p) else p.detach(), grad.detach(), self.state[p])

    # Of steps in traced functions.
    _trace_step = _traced.record

    def _traced_constants(self, group) -> dict:
        names = ("dampening", "nesterov", "maximize", "differentiable")
        return {"momentum": "0" if group["momentum"] == 0 else "not 0", **{name: group[name] for name in names}}

    def _traced_numbers(self, group) -> tuple[float, ...]:
        return tuple(float(group[name]) for name in ("lr", "momentum", "dampening", "weight_decay"))

    def _start_traced(self, group, params) -> None:
        if group["momentum"] == 0:
            return
        fresh = [p for p in params if self.state[p].get("momentum_buffer") is None]
        if fresh and group["dampening"]:
            raise NotImplementedError(
                "[SGD] the first step with momentum and dampening differs from later ones; call step() once before the trace"
            )
        for p in fresh:  # from zeros, a step without dampening is a first step
            self.state[p]["momentum_buffer"] = _C.torch.zeros_like(p)

    def _record_traced(self, group, params, grads, options) -> None:
        buffers = [self.state[p]["momentum_buffer"] for p in params] if group["momentum"] else []
        _C.ops.sgd_step_with(
            params, grads, buffers, options, nesterov=group["nesterov"], maximize=group["maximize"],
            found_inf=self.__dict__.get("found_inf"),
        )  # fmt: skip

    def _record(self, group, p, grad, state=None) -> None:
        """One parameter's step, recorded for gradients."""
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            grad = add(grad, p.clone(), recorded(group, group["weight_decay"]))  # the step overwrites p
        if group["momentum"]:
            factor = recorded(group, group["momentum"])
            state = self.state[p] if state is None else state
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = grad.detach().clone()  # as in PyTorch, not recorded
            else:
                buffer = state["momentum_buffer"]
                buffer.copy_((buffer.clone() * factor).add(grad, alpha=1 - group["dampening"]))
            momentum = state["momentum_buffer"].clone()  # the next step overwrites the buffer
            grad = add(grad, momentum, factor) if group["nesterov"] else momentum
        add_(p, grad, -recorded_rate(group))


def _real(p):
    return real_view(p.detach()) if p.is_complex() else p


sgd = stateless(
    SGD, "sgd", {"momentum_buffer_list": "momentum_buffer"}, {**flags("has_sparse_grad foreach fused"), **SCALING},
    ("weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize"),
)  # fmt: skip
