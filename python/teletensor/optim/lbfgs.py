"""Limited-memory BFGS (Nocedal 1980; Nocedal and Wright, "Numerical optimization", 2006, chapters 3 and 7)."""

from __future__ import annotations

import functools
import math

from .. import _C
from .._C import Tensor
from .._grad_mode import enable_grad, no_grad
from ._options import check_lr
from ._per_parameter import real_view
from .optimizer import Optimizer

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Requires a closure that recomputes the loss. Every iteration waits, because the line search reads values."""

    def __init__(
        self, params, lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None, *, maximize: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn, "maximize": maximize,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _numel(self) -> int:
        return sum(real_view(p.detach()).numel() for p in self._params)

    def _gather_flat_grad(self) -> Tensor:
        grads = [(_C.torch.zeros_like(p) if p.grad is None else p.grad).detach() for p in self._params]
        flat = _C.torch.cat([real_view(g.to_dense() if g.is_sparse else g).reshape(-1) for g in grads])
        return -flat if self.param_groups[0]["maximize"] else flat

    def _add_grad(self, step_size: float, update: Tensor) -> None:
        at = 0
        for p in self._params:
            p = real_view(p.detach())
            p.add_(update[at : at + p.numel()].reshape(p.shape), alpha=step_size)
            at += p.numel()

    def _clone_param(self) -> list[Tensor]:
        return [p.detach().clone() for p in self._params]

    def _set_param(self, params_data: list[Tensor]) -> None:
        for p, values in zip(self._params, params_data):
            p.detach().copy_(values)

    def _directional_evaluate(self, closure, x: list[Tensor], t: float, d: Tensor) -> tuple[float, Tensor]:
        """The loss and its gradient at x + t d, where x are the parameters, which are restored."""
        self._add_grad(t, d)
        loss, grad = float(closure()), self._gather_flat_grad()
        self._set_param(x)
        return -loss if self.param_groups[0]["maximize"] else loss, grad

    @staticmethod
    def _direction(state: dict, grad: Tensor) -> Tensor:
        """Computes the search direction by the two-loop recursion over the stored updates."""
        memory = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        q, alphas = -grad, []
        for y, s, rho in reversed(memory):
            alphas.append(rho * s.dot(q))
            q = q - y * alphas[-1]
        state["al"] = [*reversed(alphas), *state.get("al", [])[len(alphas) :]]
        q = q * state["H_diag"]
        for (y, s, rho), alpha in zip(memory, reversed(alphas)):
            q = q + s * (alpha - rho * y.dot(q))
        return q

    @staticmethod
    def _store_update(state: dict, y: Tensor, s: Tensor, history_size: int) -> None:
        state.setdefault("al", [None] * min(history_size, 1 << 16))
        ys = y.dot(s)
        if float(ys) > 1e-10:
            memory = [state[k] for k in ("old_dirs", "old_stps", "ro")]
            if len(memory[0]) == history_size:
                for values in memory:
                    values.pop(0)
            for values, value in zip(memory, (y, s, 1.0 / ys)):
                values.append(value)
            state["H_diag"] = ys / y.dot(y)

    @no_grad
    def step(self, closure):
        """Iterates until convergence; returns the first loss."""
        group = self.param_groups[0]
        sign = -1 if group["maximize"] else 1
        grad_closure = enable_grad()(closure)
        evaluate = lambda: sign * float(grad_closure())  # noqa: E731
        if not self._params:
            return grad_closure()
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = grad_closure()
        loss, grad = sign * float(first), self._gather_flat_grad()
        state["func_evals"] += 1
        evaluations = 1
        if float(grad.abs().max()) <= group["tolerance_grad"]:
            return first
        for i in range(group["max_iter"]):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update({"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1})
                direction = -grad
            else:
                y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
                self._store_update(state, y, s, group["history_size"])
                direction = self._direction(state, grad)
            lr, previous = float(group["lr"]), loss
            t = min(1.0, 1.0 / float(grad.abs().sum())) * lr if state["n_iter"] == 1 else lr
            state.update({"d": direction, "t": t, "prev_flat_grad": grad, "prev_loss": loss})
            slope = float(grad.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                objective = functools.partial(self._directional_evaluate, grad_closure)
                most = group["max_eval"] - evaluations
                loss, grad, t, count = _strong_wolfe(
                    objective, self._clone_param(), t, direction, loss, grad, slope, max_ls=most
                )
                self._add_grad(t, direction)
            else:
                self._add_grad(t, direction)
                if i == group["max_iter"] - 1:  # the last iteration does not need the loss
                    break
                loss, grad, count = evaluate(), self._gather_flat_grad(), 1
            state["t"] = t
            evaluations += count
            state["func_evals"] += count
            if (
                evaluations >= group["max_eval"]
                or float(grad.abs().max()) <= group["tolerance_grad"]
                or float(direction.abs().max()) * abs(t) <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):
                break
        return first


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """Finds a step along d from x that satisfies the strong Wolfe conditions; returns (loss, gradient, step, evaluations).

    obj_func(x, t, d) returns the loss, a number, and its gradient, a vector, at x + t d. The loss is f at x, the gradient g and the
    slope along d gtd. The function brackets a step, then reduces the bracket by cubic interpolation, with at most max_ls trials.
    """
    loss, slope, longest = float(f), float(gtd), float(d.abs().max())

    def evaluate_at(step: float):
        value, grad = obj_func(x, step, d)
        return step, float(value), grad, float(grad.dot(d))

    def decreases(trial) -> bool:
        return trial[1] <= loss + c1 * trial[0] * slope

    before, now, trials, found = (0.0, loss, g, slope), evaluate_at(float(t)), 0, None
    while trials < max_ls:
        if not decreases(now) or (trials > 1 and now[1] >= before[1]):
            break
        if abs(now[3]) <= -c2 * slope:
            found = now
            break
        if now[3] >= 0:
            break
        step = now[0]
        before, now = now, evaluate_at(_interpolate(before, now, (step + 0.01 * (step - before[0]), step * 10)))
        trials += 1
    else:
        before = 0.0, loss, g, slope
    count = trials + 1
    low, high = (before, now) if before[1] <= now[1] else (now, before)
    stuck = False
    while found is None and trials < max_ls and abs(high[0] - low[0]) * longest >= tolerance_change:
        a, b = sorted((low[0], high[0]))
        step, margin = _interpolate(low, high, (a, b)), 0.1 * (b - a)
        if min(b - step, step - a) < margin:
            if stuck or step >= b or step <= a:
                step, stuck = (b - margin if abs(step - b) < abs(step - a) else a + margin), False
            else:
                stuck = True
        else:
            stuck = False
        now = evaluate_at(step)
        count, trials = count + 1, trials + 1
        if not decreases(now) or now[1] >= low[1]:
            low, high = (low, now) if low[1] <= now[1] else (now, low)
            continue
        if abs(now[3]) <= -c2 * slope:
            found = now
        elif now[3] * (high[0] - low[0]) >= 0:
            high = low
        low = now
    low = found or low
    return low[1], low[2], low[0], count


def _interpolate(a: tuple, b: tuple, bounds: tuple[float, float]) -> float:
    return _cubic_interpolate(a[0], a[1], a[3], b[0], b[1], b[3], bounds)


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None) -> float:
    """The step between bounds (x1 and x2 if None) that minimises the cubic with value f and slope g at the steps x.

    The middle of the bounds if the cubic has no minimum or is not finite.
    """
    x1, f1, g1, x2, f2, g2 = map(float, (x1, f1, g1, x2, f2, g2))
    if x1 > x2:
        x1, f1, g1, x2, f2, g2 = x2, f2, g2, x1, f1, g1
    lower, upper = (x1, x2) if bounds is None else map(float, bounds)
    if x1 == x2 or not math.isfinite(f1 + f2 + g1 + g2):
        return (lower + upper) / 2
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (lower + upper) / 2
    d2 = math.sqrt(square)
    if g2 - g1 + 2 * d2 == 0:
        return (lower + upper) / 2
    minimiser = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    return min(max(minimiser, lower), upper)
