"""Operators on DTensors that are computed from other operators, because these can be divided and they cannot."""

from __future__ import annotations

import math

from ... import _C
from .placement_types import Shard


def _sharded_along(spec, dims) -> bool:
    return any(isinstance(p, Shard) and p.dim in dims for p in spec.placements)


def _norm(call, specs):
    """A norm over divided dimensions: the root of a sum of powers."""
    x, order = call.args["input"], call.args.get("ord", call.args.get("p"))
    order = 2.0 if order is None else order
    dims = call.args["dim"]
    reduced = range(call.ndim) if not dims else [d % call.ndim for d in dims]
    if not _sharded_along(specs[0], reduced) or order in (0, math.inf, -math.inf):
        return None
    if call.args["dtype"] is not None:
        x = x.to(call.args["dtype"])
    magnitude = x.abs() if x.dtype.is_complex or order != 2 else x
    powers = magnitude * magnitude if order == 2 else magnitude**order
    total = powers.sum(dims, call.args["keepdim"]) if dims else powers.sum()
    return total.sqrt() if order == 2 else total ** (1 / order)


def _dropout(call, specs):
    """Draws for the whole tensor, so that the result does not depend on the placement."""
    x, p = call.args["input"], call.args["p"]
    if not call.args["training"] or p == 0:
        return x.clone()
    if p == 1:
        return x * 0
    return x * (_C.torch.empty_like(x).bernoulli_(1 - p) / (1 - p))


def _loss(difference):
    def loss(call, specs):
        values = difference(call.args["input"], call.args["target"])
        reduction = call.args["reduction"]
        if reduction not in ("none", "mean", "sum"):
            return None  # the operator raises the error
        return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()

    return loss


def _cross_entropy(call, specs):
    """Cross entropy of scores that are divided by class: the scores are not gathered."""
    x, target = call.args["input"], call.args["target"]
    dim = 0 if call.ndim == 1 else 1
    if (
        not _sharded_along(specs[0], [dim]) or call.args["weight"] is not None or call.args["label_smoothing"] != 0
        or target.dtype.is_floating_point or call.args["reduction"] not in ("none", "mean", "sum")
    ):  # fmt: skip
        return None
    largest = x.detach().amax(dim, True)
    normalizer = (x - largest).exp().sum(dim).log() + largest.squeeze(dim)
    kept = target != call.args["ignore_index"]
    chosen = x.gather(dim, (target * kept).unsqueeze(dim)).squeeze(dim)
    losses = (normalizer - chosen) * kept.to(x.dtype)
    if call.args["reduction"] == "none":
        return losses
    return losses.sum() if call.args["reduction"] == "sum" else losses.sum() / kept.sum().to(x.dtype)


DECOMPOSITIONS = {
    "cross_entropy": _cross_entropy,
    "norm": _norm,
    "vector_norm": _norm,
    "dropout": _dropout,
    "mse_loss": _loss(lambda a, b: (a - b).square()),
    "l1_loss": _loss(lambda a, b: (a - b).abs()),
}
