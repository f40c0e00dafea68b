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
    if not _sharded_along(specs[0], reduced) or not isinstance(order, (int, float)) or not 1 <= order < math.inf:
        return None
    if call.args["dtype"] is not None:
        x = x.to(call.args["dtype"])
    dtype, x = x.dtype, _single(x)
    magnitude = x.abs() if x.dtype.is_complex or order != 2 else x
    powers = magnitude * magnitude if order == 2 else magnitude**order
    total = powers.sum(dims, call.args["keepdim"]) if dims else powers.sum()
    zero = total == 0  # the gradient is 0 there, as for the operator itself
    total = total.masked_fill(zero, 1)
    root = (total.sqrt() if order == 2 else total ** (1 / order)).masked_fill(zero, 0)
    return root if dtype.is_complex else root.to(dtype)


def _single(x):
    """Half precision as float32, in which the operators accumulate."""
    return x.float() if x.dtype in (_C.float16, _C.bfloat16) else x


def _dropout(call, specs):
    """Draws for the whole tensor, so that the result does not depend on the placement."""
    x, p = call.args["input"], call.args["p"]
    if not call.args["training"] or p == 0:
        return x.clone()
    if p == 1:
        return x.masked_fill(_C.torch.ones_like(x, dtype=_C.bool), 0)
    kept = _C.torch.empty_like(x).bernoulli_(1 - p)
    return (x * (1 / (1 - p))).masked_fill(kept == 0, 0)


# Losses of each element: without a reduction they are pointwise.
ELEMENTWISE_LOSSES = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "poisson_nll_loss", "gaussian_nll_loss",
)  # fmt: skip


def _loss(call, specs):
    """The sum or mean of the elements' losses."""
    reduction = call.args["reduction"]
    if reduction not in ("mean", "sum"):
        return None  # pointwise, or the operator raises the error
    values = getattr(_C.ops, call.name)(**{**call.args, "reduction": "none"})
    return values.mean() if reduction == "mean" else values.sum()


def _cross_entropy(call, specs):
    """Cross entropy of scores that are divided by class: the scores are not gathered."""
    x, target = call.args["input"], call.args["target"]
    dim = 0 if call.ndim == 1 else 1
    if (
        not _sharded_along(specs[0], [dim]) or call.args["weight"] is not None or call.args["label_smoothing"] != 0
        or target.dtype.is_floating_point or call.args["reduction"] not in ("none", "mean", "sum")
    ):  # fmt: skip
        return None
    dtype, x = x.dtype, _single(x)
    largest = x.detach().amax(dim, True)
    normalizer = (x - largest).exp().sum(dim).log() + largest.squeeze(dim)
    kept = target != call.args["ignore_index"]
    chosen = x.gather(dim, (target * kept).unsqueeze(dim)).squeeze(dim)
    losses = (normalizer - chosen).masked_fill(kept.logical_not(), 0)
    if call.args["reduction"] == "none":
        return losses.to(dtype)
    total = losses.sum()
    return (total if call.args["reduction"] == "sum" else total / kept.sum().to(x.dtype)).to(dtype)


DECOMPOSITIONS = {
    "cross_entropy": _cross_entropy,
    "norm": _norm,
    "vector_norm": _norm,
    "dropout": _dropout,
    **dict.fromkeys(ELEMENTWISE_LOSSES, _loss),
}
