"""Limited-memory BFGS (Nocedal 1980; Nocedal and Wright, "Numerical optimization", 2006, chapters 3 and 7)."""

from __future__ import annotations

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
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

    def _flat_grad(self) -> Tensor:
        group = self.param_groups[0]
        grads = [(_C.torch.zeros_like(p) if p.grad is None else p.grad).detach() for p in group["params"]]
        flat = _C.torch.cat([real_view(g).reshape(-1) for g in grads])
        return -flat if group["maximize"] else flat

    def _add_to_params(self, direction: Tensor, step: float) -> None:
        at = 0
        for p in self.param_groups[0]["params"]:
            p = real_view(p.detach())
            p.add_(direction[at : at + p.numel()].reshape(p.shape), alpha=step)
            at += p.numel()

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
        ys = float(y.dot(s))
        if ys > 1e-10:
            memory = [state[k] for k in ("old_dirs", "old_stps", "ro")]
            if len(memory[0]) == history_size:
                for values in memory:
                    values.pop(0)
            for values, value in zip(memory, (y, s, 1.0 / ys)):
                values.append(value)
            state["H_diag"] = ys / float(y.dot(y))

    @no_grad
    def step(self, closure):
        """Iterates until convergence; returns the first loss."""
        group = self.param_groups[0]
        sign = -1 if group["maximize"] else 1
        grad_closure = enable_grad()(closure)
        evaluate = lambda: sign * float(grad_closure())  # noqa: E731
        if not group["params"]:
            return grad_closure()
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = grad_closure()
        loss, grad = sign * float(first), self._flat_grad()
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
                most = group["max_eval"] - evaluations
                loss, grad, t, count = self._search(evaluate, direction, t, loss, grad, slope, most)
            else:
                self._add_to_params(direction, t)
                if i == group["max_iter"] - 1:  # the last iteration does not need the loss
                    break
                loss, grad, count = evaluate(), self._flat_grad(), 1
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

    def _search(self, evaluate, direction, t, loss, grad, slope, most):
        """Finds a step that satisfies the strong Wolfe conditions; returns (loss, gradient, step, evaluations).

        Brackets such a step, then bisects the bracket by cubic interpolation, with at most `most` trials.
        """
        current_step = 0.0

        def evaluate_at(step: float):
            nonlocal current_step
            self._add_to_params(direction, step - current_step)
            current_step = step
            value, g = evaluate(), self._flat_grad()
            return step, value, g, float(g.dot(direction))

        def decreases(trial) -> bool:
            return trial[1] <= loss + 1e-4 * trial[0] * slope

        start, longest = (0.0, loss, grad, slope), float(direction.abs().max())
        before, now, trials, found = start, evaluate_at(t), 0, None
        while trials < most:
            if not decreases(now) or (trials > 1 and now[1] >= before[1]):
                break
            if abs(now[3]) <= -0.9 * slope:
                found = now
                break
            if now[3] >= 0:
                break
            t = now[0]
            before, now = now, evaluate_at(_minimum(before, now, t + 0.01 * (t - before[0]), t * 10))
            trials += 1
        else:
            before = start
        count = trials + 1
        low, high = (before, now) if before[1] <= now[1] else (now, before)
        stuck = False
        while found is None and trials < most and abs(high[0] - low[0]) * longest >= 1e-9:
            a, b = sorted((low[0], high[0]))
            t, margin = _minimum(low, high, a, b), 0.1 * (b - a)
            if min(b - t, t - a) < margin:
                if stuck or t >= b or t <= a:
                    t, stuck = (b - margin if abs(t - b) < abs(t - a) else a + margin), False
                else:
                    stuck = True
            else:
                stuck = False
            now = evaluate_at(t)
            count, trials = count + 1, trials + 1
            if not decreases(now) or now[1] >= low[1]:
                low, high = (low, now) if low[1] <= now[1] else (now, low)
                continue
            if abs(now[3]) <= -0.9 * slope:
                found = now
            elif now[3] * (high[0] - low[0]) >= 0:
                high = low
            low = now
        low = found or low
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
