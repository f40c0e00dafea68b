"""Losses with ATen's signatures: the reduction is a number."""

from __future__ import annotations

import functools
import inspect
from typing import Callable

from .._C import Tensor
from . import functional as F  # noqa: N812 - PyTorch's name

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(number: int) -> str:
    if number not in (0, 1, 2):
        raise ValueError(f"expected reduction to be 0 (none), 1 (mean) or 2 (sum), got {number}")
    return _REDUCTIONS[number]


def none_by_default(function: Callable) -> Callable:
    """A loss that returns one value per element if no reduction is given, although the declared default is the mean.

    PyTorch's bindings read that default as 0. The operator in torch.ops.aten, which is ``__wrapped__``, has the mean.
    """
    place = list(inspect.signature(function).parameters).index("reduction")

    @functools.wraps(function)
    def loss(*args, **kwargs) -> Tensor:
        if len(args) <= place:
            kwargs.setdefault("reduction", 0)
        return function(*args, **kwargs)

    return loss


@none_by_default
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """functional.binary_cross_entropy_with_logits."""
    return F.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, reduction=_reduction(reduction))


@none_by_default
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """functional.cosine_embedding_loss."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


@none_by_default
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank: int = 0, reduction: int = 1, zero_infinity: bool = False
) -> Tensor:
    """functional.ctc_loss."""
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity)


@none_by_default
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """functional.hinge_embedding_loss."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


@none_by_default
def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """functional.kl_div."""
    return F.kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)


@none_by_default
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """functional.margin_ranking_loss."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """functional.poisson_nll_loss."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))
