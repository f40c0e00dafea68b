"""Losses."""

from __future__ import annotations

import teletensor as torch

from .._call import Call

Tensor = torch.Tensor


def _picked(call: Call, scores: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The reduced negated scores of the targets."""
    ignored = call.get("ignore_index")
    target = target.to(torch.int64)
    kept = torch.ones_like(target, dtype=torch.bool) if ignored is None else target != ignored
    safe = torch.where(kept, target, torch.zeros_like(target))
    loss = -torch.gather(scores, 1, safe.unsqueeze(1)).squeeze(1)
    factor = kept.to(scores.dtype) if weight is None else weight[safe] * kept.to(scores.dtype)
    loss = torch.where(kept, loss, torch.zeros_like(loss)) * factor
    reduction = call.get("reduction", "mean")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if weight is None and ignored is None:
        return loss.mean()
    return loss.sum() / factor.sum()


def _nll(call: Call, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    return _picked(call, x, target, weight)


def _cross_entropy(call: Call, x: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple:
    scores = torch.log_softmax(x, 1)
    return _picked(call, scores, target, weight), scores


TABLE: dict[str, tuple] = {
    "NegativeLogLikelihoodLoss": ((12, _nll),),
    "SoftmaxCrossEntropyLoss": ((12, _cross_entropy),),
}
