"""Gradients, and optimizers' steps as operators: Adagrad, Adam and Momentum."""

from __future__ import annotations

from typing import Any

import teletensor as torch

from .._call import Call, keeps

Tensor = torch.Tensor


def _groups(tensors: tuple, kinds: int) -> list[tuple]:
    """Inputs in the order X1, X2, ..., G1, G2, ..., V1, ... as one tuple per X."""
    if len(tensors) % kinds:
        raise ValueError(f"[onnx] expected {kinds} tensors per parameter, got {len(tensors)}")
    count = len(tensors) // kinds
    return [tuple(tensors[k * count + i] for k in range(kinds)) for i in range(count)]


def _results(rows: list[tuple]) -> tuple:
    return tuple(row[k] for k in range(len(rows[0])) for row in rows)


def _adagrad(call: Call, rate: Tensor, step: Tensor, *tensors: Tensor) -> Any:
    decay, penalty, eps = call.get("decay_factor", 0.0), call.get("norm_coefficient", 0.0), call.get("epsilon", 0.0)
    rows = []
    r = rate / (1 + step * decay)
    for x, g, h in _groups(tensors, 3):
        gradient = penalty * x + g
        total = h + gradient * gradient
        rows.append(((x - r * gradient / (torch.sqrt(total) + eps)).to(x.dtype), total))
    return _results(rows)


def _adam(call: Call, rate: Tensor, step: Tensor, *tensors: Tensor) -> Any:
    alpha, beta, eps = call.get("alpha", 0.9), call.get("beta", 0.999), call.get("epsilon", 1e-6)
    penalty, after = call.get("norm_coefficient", 0.0), call.get("norm_coefficient_post", 0.0)
    t = step.to(torch.float64)
    corrected = rate * (torch.sqrt(1 - torch.pow(beta, t)) / (1 - torch.pow(alpha, t)))
    r = torch.where(t > 0, corrected, rate.to(torch.float64))
    rows = []
    for x, g, v, h in _groups(tensors, 4):
        gradient = penalty * x + g
        mean = alpha * v + (1 - alpha) * gradient
        square = beta * h + (1 - beta) * gradient * gradient
        new = x - r * mean / (torch.sqrt(square) + eps)
        rows.append((((1 - after) * new).to(x.dtype), mean, square))
    return _results(rows)


def _momentum(call: Call, rate: Tensor, step: Tensor, *tensors: Tensor) -> Any:
    alpha, beta, penalty = call.need("alpha"), call.need("beta"), call.get("norm_coefficient", 0.0)
    mode = call.need("mode")
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"[Momentum] expected a mode of standard or nesterov, got {mode!r}")
    factor = torch.where(step > 0, torch.full_like(rate, beta), torch.ones_like(rate))
    rows = []
    for x, g, v in _groups(tensors, 3):
        gradient = penalty * x + g
        new = alpha * v + factor * gradient
        rows.append((x - rate * (gradient + alpha * new if mode == "nesterov" else new), new))
    return _results(rows)


@keeps()
def _gradient(call: Call, *_inputs: Any) -> tuple:
    """The derivatives of a value of the graph. Its variables (xs) have required gradients since they were computed."""
    run = call.run
    y = call.tensor(run.value(call.need("y")))
    xs = [run.value(name) for name in call.need("xs")]
    found = torch.autograd.grad(y, xs, torch.ones_like(y), retain_graph=True, allow_unused=True)
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(xs, found))


TABLE: dict[str, tuple] = {
    "Gradient": ((1, _gradient),),
    "Adagrad": ((1, _adagrad),),
    "Adam": ((1, _adam),),
    "Momentum": ((1, _momentum),),
}
