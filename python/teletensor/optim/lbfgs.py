"""Limited-memory BFGS (Nocedal 1980; Nocedal and Wright, "Numerical optimization", 2006, chapters 3 and 7)."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._grad_mode import enable_grad, no_grad
from .optimizer import Optimizer

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Requires a closure that recomputes the loss. Every iteration waits, because the line search reads values."""

    def __init__(
        self, params, lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ):  # fmt: skip
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

    def _flat_grad(self) -> Tensor:
        params = self.param_groups[0]["params"]
        return _C.torch.cat([(_C.torch.zeros_like(p) if p.grad is None else p.grad).detach().reshape(-1) for p in params])

    def _add_to_params(self, direction: Tensor, step: float) -> None:
        at = 0
        for p in self.param_groups[0]["params"]:
            p.detach().add_(direction[at : at + p.numel()].reshape(p.shape), alpha=step)
            at += p.numel()

    def _direction(self, state: dict, grad: Tensor) -> Tensor:
        """Computes the search direction by the two-loop recursion over the stored updates."""
        q, alphas = -grad, []
        for s, y, rho in reversed(state["memory"]):
            alphas.append(rho * s.dot(q))
            q = q - y * alphas[-1]
        q = q * state["scale"]
        for (s, y, rho), alpha in zip(state["memory"], reversed(alphas)):
            q = q + s * (alpha - rho * y.dot(q))
        return q

    def _store_update(self, state: dict, y: Tensor, s: Tensor, history_size: int) -> None:
        ys = float(y.dot(s))
        if ys > 1e-10:
            if len(state["memory"]) == history_size:
                state["memory"].pop(0)
            state["memory"].append((s, y, 1.0 / ys))
            state["scale"] = ys / float(y.dot(y))

    @no_grad
    def step(self, closure):
        """Iterates until convergence; returns the first loss."""
        group = self.param_groups[0]
        evaluate = enable_grad()(closure)
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = evaluate()
        loss, grad = float(first), self._flat_grad()
        state["func_evals"] += 1
        evaluations = 1
        if float(grad.abs().max()) <= group["tolerance_grad"]:
            return first
        for _ in range(group["max_iter"]):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state["memory"], state["scale"] = [], 1.0
                direction = -grad
            else:
                self._store_update(state, grad - state["prev_grad"], state["d"] * state["t"], group["history_size"])
                direction = self._direction(state, grad)
            state["prev_grad"], previous = grad, loss
            lr = float(group["lr"])
            t = min(1.0, 1.0 / float(grad.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope = float(grad.dot(direction))
            state["d"], state["t"] = direction, t
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is None:
                self._add_to_params(direction, t)
                loss, grad = float(evaluate()), self._flat_grad()
                count = 1
            else:
                loss, grad, t, count = self._search(evaluate, direction, t, loss, grad, slope, group["tolerance_change"])
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

    def _search(self, evaluate, direction, t, loss, grad, slope, tolerance_change):
        """Finds a step that satisfies the strong Wolfe conditions, by bracketing and cubic interpolation."""
        current_step = 0.0

        def evaluate_at(step: float):
            nonlocal current_step
            self._add_to_params(direction, step - current_step)
            current_step = step
            value, g = float(evaluate()), self._flat_grad()
            return step, value, g, float(g.dot(direction))

        start = (0.0, loss, grad, slope)
        before, count, bracket = start, 0, None
        for i in range(25):
            now = evaluate_at(t)
            count += 1
            if now[1] > loss + 1e-4 * t * slope or (i > 0 and now[1] >= before[1]) or math.isnan(now[1]):
                bracket = (before, now)
            elif abs(now[3]) <= -0.9 * slope:
                return now[1], now[2], now[0], count
            elif now[3] >= 0:
                bracket = (now, before)
            if bracket:
                break
            t, before = min(10 * t, _minimum(before, now, t + 0.01 * (t - before[0]), 10 * t)), now
        low, high = bracket or (start, now)
        while count < 25 and abs(high[0] - low[0]) * float(direction.abs().max()) > tolerance_change:
            a, b = sorted((low[0], high[0]))
            t = _minimum(low, high, a + 0.1 * (b - a), b - 0.1 * (b - a))
            now = evaluate_at(t)
            count += 1
            if now[1] > loss + 1e-4 * t * slope or now[1] >= low[1]:
                high = now
                continue
            if abs(now[3]) <= -0.9 * slope:
                return now[1], now[2], now[0], count
            if now[3] * (high[0] - low[0]) >= 0:
                high = low
            low = now
        if current_step != low[0]:
            self._add_to_params(direction, low[0] - current_step)
        return low[1], low[2], low[0], count


def _minimum(a: tuple, b: tuple, lower: float, upper: float) -> float:
    """The step in [lower, upper] that minimises the cubic through two points (step, value, gradient, slope)."""
    (x1, f1, _, g1), (x2, f2, _, g2) = (a, b) if a[0] <= b[0] else (b, a)
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
