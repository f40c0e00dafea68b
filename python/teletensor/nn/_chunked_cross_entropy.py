"""linear_cross_entropy in parts of the batch, so that only the logits of one part are stored at a time."""

from __future__ import annotations

import warnings
from typing import Any, Callable

from .. import _C
from .._C import Tensor


def applies(weight: Tensor, target: Tensor) -> bool:
    """Whether the loss can be computed in parts; warns if not."""
    found = weight.dim() == 2 and not target.requires_grad
    if not found:
        warnings.warn(
            "linear_cross_entropy: `options` ignored; parts of a batch need targets that do not require grad, and one target "
            "per row",
            stacklevel=4,
        )
    return found


def in_parts(
    loss: Callable, input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: Tensor | None,
    reduction: str, ignore_index: int | None, label_smoothing: float, options: Any,
) -> Tensor:  # fmt: skip
    """The loss of a batch (N, features), computed in parts. `loss` is linear_cross_entropy.

    The backward pass computes each part's logits again.
    """
    from ..utils._checkpoint_runs import checkpoint

    rows, size = input.shape[0], options.rows_per_part(input.shape[0], input.shape[1], linear_weight.shape[0])
    kept = {
        "weight": weight,
        "reduction": "none" if reduction == "none" else "sum",
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
    }

    def part(x, w, t, b):
        return loss(x, w, t, linear_bias=b, **kept)

    found = [
        checkpoint(part, input[i : i + size], linear_weight, target[i : i + size], linear_bias, use_reentrant=False)
        for i in range(0, rows, size)
    ]
    if reduction == "none":
        return _C.torch.cat(found)
    total = _C.torch.stack(found).sum()
    return total if reduction == "sum" else total / _divisor(target, weight, ignore_index, input)


def _divisor(target: Tensor, weight: Tensor | None, ignore_index: int | None, like: Tensor) -> Tensor | int:
    """The number of rows, or the weight of the targets that are not ignored."""
    if target.is_floating_point():
        return like.shape[0]
    used = target != (-100 if ignore_index is None else ignore_index)
    if weight is None:
        return used.sum().to(like.dtype)
    return (weight[_C.torch.where(used, target, 0)] * used).sum()
