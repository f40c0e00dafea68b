"""The bases of optimizers whose step is a few instructions per parameter."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from . import _traced
from ._options import check_lr, recorded_rate
from ._scaled import Coefficient, add, addcmul_, coefficients_for, lerp_
from .optimizer import Optimizer, require_non_negative


class PerParameterOptimizer(Optimizer):
    """The base of optimizers whose step is a few instructions per parameter. A step waits only if lr is a tensor.

    With differentiable=True the step is recorded for gradients. The numbers of a step are computed in the client
    (_coefficients); in a traced function, they are tensors, which are written before each run.
    """

    _numbers = ("step",)
    _recorded_options = ("lr",)

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
            decay, *numbers = self._all_coefficients(group, state)
            grad = self._with_weight_decay(group, p, grad, decay)
            if p.is_complex():  # real and imaginary parts are independent numbers
                p, grad, state = real_view(p), real_view(grad), {k: real_view(v) for k, v in state.items()}
            self._step(group, p, grad, state, *numbers)

    def _all_coefficients(self, group: dict, state: dict) -> tuple[float, ...]:
        decay = group.get("weight_decay", 0)
        if group.get("decoupled_weight_decay"):
            decay = 1 - recorded_rate(group) * decay
        return decay, *self._coefficients(group, state)

    def _with_weight_decay(self, group: dict, p: Tensor, grad: Tensor, decay: Coefficient) -> Tensor:
        if not group.get("weight_decay", 0):
            return grad
        if group.get("decoupled_weight_decay"):
            p.mul_(decay)
            return grad
        return add(grad, p, decay)

    # Of steps in traced functions.
    _trace_step = _traced.record

    def _traced_constants(self, group: dict) -> dict:
        zero = {name: group[name] == 0 for name in ("weight_decay", "momentum") if name in group}
        return {**{k: v for k, v in group.items() if isinstance(v, (bool, str))}, **{f"{k} is 0": v for k, v in zero.items()}}

    def _start_traced(self, group: dict, params: list[Tensor]) -> None:
        for p in params:
            state = self.state[p]
            if "step" not in state:
                state["step"] = 0
                self._start(group, p.detach(), state)

    def _traced_rows(self, params: list[Tensor]) -> list[list[Tensor]]:
        """The parameters, those together whose states have the same numbers, and so the same coefficients."""
        rows: dict[tuple, list[Tensor]] = {}
        for p in params:
            rows.setdefault(tuple(self.state[p].get(name) for name in self._numbers), []).append(p)
        return list(rows.values())

    def _advanced_numbers(self, group: dict, rows: list[list[Tensor]]) -> tuple[float, ...]:
        """Counts a step of the parameters; returns its coefficients, row by row."""
        numbers: list[float] = []
        for row in rows:
            found = set()
            for p in row:
                self.state[p]["step"] = int(self.state[p]["step"]) + 1
                found.add(self._all_coefficients(group, self.state[p]))
            if len(found) != 1:
                raise RuntimeError(
                    f"[{type(self).__name__}] expected parameters of a traced step to have taken as many steps as each other, "
                    "as when the function was traced; trace the function again"
                )
            numbers += map(float, found.pop())
        return tuple(numbers)

    def _record_traced_rows(self, group: dict, rows: list[list[Tensor]], options: Tensor) -> None:
        count = options.numel() // len(rows)
        for i, row in enumerate(rows):
            all_numbers = [options[i * count + k] for k in range(count)]
            for p in row:
                decay, *numbers = coefficients_for(p, all_numbers)
                grad = -p.grad if group.get("maximize") else p.grad
                self._step(group, p, self._with_weight_decay(group, p, grad, decay), self.state[p], *numbers)

    def _record_traced(self, group: dict, params: list[Tensor], grads: list[Tensor], options: Tensor) -> None:
        raise NotImplementedError  # _record_traced_rows

    def _coefficients(self, group: dict, state: dict) -> tuple[float, ...]:
        """The numbers of the step that the state has counted. Updates other numbers of the state."""
        raise NotImplementedError

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        raise NotImplementedError

    def _step(self, group: dict, p: Tensor, grad: Tensor, state: dict, *coefficients: Coefficient) -> None:
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

    def _moments(self, grad, state, part1, beta2, part2) -> tuple[Tensor, Tensor]:
        """Updates the running means; part1 and part2 are 1 - beta1 and 1 - beta2."""
        mean = as_kept(lerp_(state["exp_avg"], grad, part1))
        return mean, addcmul_(state["exp_avg_sq"].mul_(beta2), grad, grad, part2)


def as_kept(state: Tensor) -> Tensor:
    """A tensor of the state as a recorded step keeps it: a copy, since the next step overwrites the state."""
    return state.clone() if _C.is_grad_enabled() else state


def real_view(value):
    """A complex tensor as a view with a last dimension of real and imaginary parts; other values unchanged."""
    return _C.torch.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value
