"""How classifiers of ai.onnx.ml turn sums into scores."""

from __future__ import annotations

import math

import teletensor as torch

Tensor = torch.Tensor


def transformed(x: Tensor, how: str) -> Tensor:
    """Scores (rows, classes) by the attribute post_transform."""
    if how == "NONE":
        return x
    if how == "LOGISTIC":
        return torch.sigmoid(x)
    if how == "SOFTMAX":
        return torch.softmax(x, -1)
    if how == "SOFTMAX_ZERO":
        powers = torch.where(x == 0, torch.zeros_like(x), torch.exp(x - x.amax(-1, True)))
        return powers / powers.sum(-1, True)
    if how == "PROBIT":
        return math.sqrt(2.0) * torch.erfinv(2 * x - 1)
    raise ValueError(
        f"[onnx] expected a post_transform of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, got {how!r}"
    )
