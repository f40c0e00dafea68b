"""Adam (Kingma and Ba 2014) and AMSGrad (Reddi et al. 2018)."""

from __future__ import annotations

from collections import defaultdict

from .. import _C
from . import _traced
from ._options import check_betas, check_lr, recorded
from ._per_parameter import real_view
from ._scaled import add, addcdiv_, addcmul_, lerp
from ._skipped_steps import are_on, count_in_engine, has_own_step, is_counter
from ._stateless import MOMENTS, SCALING, STEPS, flags, stateless
from .optimizer import Optimizer, implementation, require_non_negative

__all__ = ["Adam", "adam"]


def _lists(rows: list[tuple], amsgrad: bool) -> list[list]:
    """Parameters, gradients and moments of rows that begin with (parameter, gradient, state)."""
    moments = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else []))
    lists = [[row[0] for row in rows], [row[1] for row in rows], *([row[2][name] for row in rows] for name in moments)]
    return lists if amsgrad else [*lists, []]


class Adam(Optimizer):
    """Scales steps by running means of the gradients and of their squares (Kingma and Ba, "Adam", 2014).

    p = p - lr m / (sqrt(v) + eps), where m and v are the means m = beta1 m + (1 - beta1) g and v = beta2 v + (1 - beta2) g^2,
    divided by 1 - beta^step.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of a group.
        lr: the rate, a number or a tensor.
        betas: beta1 and beta2.
        eps: added to the root.
        weight_decay: a multiple of p that is added to g.
        amsgrad: whether the largest v so far is used.
        maximize: whether to increase the loss.
        foreach, capturable, differentiable, fused: select PyTorch's implementations.

    Raises:
        ValueError: an option is not in its range, or there are no parameters.

    >>> p = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    >>> (p * p).sum().backward()
    >>> torch.optim.Adam([p], lr=0.5).step()
    >>> p.tolist()
    [0.5, -0.5]
    """

    _recorded_options = ("lr", "betas", "eps", "weight_decay")

    _numbers = ("step",)

    def __init__(
        self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        amsgrad: bool = False, *, foreach=None, maximize: bool = False, capturable=False, differentiable=False, fused=None,
        decoupled_weight_decay: bool = False,
    ):  # fmt: skip
        check_lr(lr, foreach, capturable)
        require_non_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        check_betas(betas, foreach, capturable)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay,
            **implementation(foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused),
        })  # fmt: skip

    def _start(self, p, amsgrad: bool) -> dict:
        state = self.state[p]
        if "step" not in state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = _C.torch.zeros_like(p), _C.torch.zeros_like(p)
            if amsgrad:
                state["max_exp_avg_sq"] = _C.torch.zeros_like(p)
        return state

    def _skips_on_device(self, found_inf) -> bool:
        return type(self)._update is Adam._update and not has_own_step(self) and are_on(self, found_inf.device)

    def _count_in_engine(self, group, params, states) -> None:
        members = set(map(id, params))
        idle = [self.state[p] for p in group["params"] if id(p) not in members and p in self.state]
        for device in {p.device for p in params}:
            count_in_engine([s for p, s in zip(params, states) if p.device == device], idle, device)

    def _update(self, group, params, grads) -> None:
        # Bias correction depends on the step. Usually all parameters have the same step and one call is enough.
        found_inf = self.__dict__.get("found_inf")
        states = [self._start(p, group["amsgrad"]) for p in params]
        # Only the engine knows whether a scaled step counts. Once it counts, parameters may share a counter.
        if found_inf is not None or any(isinstance(state["step"], _C.Tensor) for state in states):
            self._count_in_engine(group, params, states)
        by_step = defaultdict(list)
        for p, grad, state in zip(params, grads, states):
            if not is_counter(state["step"], p.device) or group["differentiable"]:
                state["step"] = int(state["step"]) + 1
            step = state["step"]
            if group["differentiable"]:
                self._record(group, p, grad, state)
                continue
            if p.is_complex():  # real and imaginary parts are independent numbers
                p, grad, state = real_view(p.detach()), real_view(grad.detach()), {k: real_view(v) for k, v in state.items()}
            by_step[step if isinstance(step, int) else id(step)].append((p, grad, state, step))
        for rows in by_step.values():
            step = rows[0][3]
            _C.ops.adam_step(
                *_lists(rows, group["amsgrad"]),
                step=step if isinstance(step, int) else 1,
                lr=float(group["lr"]),
                beta1=float(group["betas"][0]),
                beta2=float(group["betas"][1]),
                eps=float(group["eps"]),
                weight_decay=float(group["weight_decay"]),
                decoupled=group["decoupled_weight_decay"],
                amsgrad=group["amsgrad"],
                maximize=group["maximize"],
                found_inf=found_inf,
                steps=None if isinstance(step, int) else step,
            )

    # Of steps in traced functions.
    _trace_step = _traced.record

    def _traced_constants(self, group) -> dict:
        return {name: group[name] for name in ("decoupled_weight_decay", "amsgrad", "maximize", "differentiable")}

    def _traced_numbers(self, group) -> tuple[float, ...]:
        return float(group["lr"]), *map(float, group["betas"]), float(group["eps"]), float(group["weight_decay"])

    def _start_traced(self, group, params) -> None:
        self._count_in_engine(group, params, [self._start(p, group["amsgrad"]) for p in params])

    def _record_traced(self, group, params, grads, options) -> None:
        by_counter = defaultdict(list)
        for p, grad in zip(params, grads):
            by_counter[id(self.state[p]["step"])].append((p, grad, self.state[p]))
        for rows in by_counter.values():
            _C.ops.adam_step_with(
                *_lists(rows, group["amsgrad"]),
                options,
                rows[0][2]["step"],
                decoupled=group["decoupled_weight_decay"],
                amsgrad=group["amsgrad"],
                maximize=group["maximize"],
                found_inf=self.__dict__.get("found_inf"),
            )

    def _record(self, group, p, grad, state) -> None:
        """One parameter's step, recorded for gradients."""
        beta1, beta2 = (recorded(group, beta) for beta in group["betas"])
        lr, eps, decay = (recorded(group, group[name]) for name in ("lr", "eps", "weight_decay"))
        step = state["step"]
        grad = -grad if group["maximize"] else grad
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay:
            grad = add(grad, p.clone(), decay)  # the step overwrites p
        if p.is_complex():
            p, grad, state = real_view(p), real_view(grad), {k: real_view(v) for k, v in state.items()}
        mean, squares = state["exp_avg"], state["exp_avg_sq"]
        mean.copy_(lerp(mean.clone(), grad, 1 - beta1))
        squares.copy_(addcmul_(squares.clone() * beta2, grad, grad, 1 - beta2))
        if group["amsgrad"]:
            squares = state["max_exp_avg_sq"].copy_(_C.torch.maximum(state["max_exp_avg_sq"].clone(), squares.clone()))
        scale = (squares.sqrt() / (1 - beta2**step) ** 0.5) + eps
        addcdiv_(p, mean.clone(), scale, -lr / (1 - beta1**step))


ADAM_STATES = {**MOMENTS, "max_exp_avg_sqs": "max_exp_avg_sq", **STEPS}
ADAM_FLAGS = {**flags("foreach capturable differentiable fused"), **SCALING, "has_complex": False}
ADAM_OPTIONS = ("amsgrad", "beta1", "beta2", "lr", "weight_decay", "eps", "maximize")
adam = stateless(Adam, "adam", ADAM_STATES, {**ADAM_FLAGS, "decoupled_weight_decay": False}, ADAM_OPTIONS)
