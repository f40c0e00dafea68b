"""linear_cross_entropy in parts of the batch, so that only the logits of one part are stored at a time."""

from __future__ import annotations

import warnings
from typing import Any, Callable

from .. import _C
from .._C import Tensor, bfloat16, float16, int64, uint8


def applies(input: Tensor, linear_weight: Tensor, target: Tensor) -> bool:
    """Whether the loss can be computed in parts; warns if the options could never be used for such arguments. False also
    for arguments that the computation of the whole refuses, and for empty ones.
    """
    if linear_weight.dim() != 2 or target.requires_grad:
        warnings.warn(
            "linear_cross_entropy: `options` ignored; parts of a batch need targets that do not require grad, and one target "
            "per row",
            stacklevel=4,
        )
        return False
    if input.dim() != 2 or 0 in (*input.shape, *linear_weight.shape):
        return False
    if target.is_floating_point():
        return tuple(target.shape) == (input.shape[0], linear_weight.shape[0])
    return target.dtype in (int64, uint8) and target.shape == input.shape[:1]


def in_parts(
    loss: Callable, input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: Tensor | None,
    reduction: str, ignore_index: int | None, label_smoothing: float, options: Any,
) -> Tensor:  # fmt: skip
    """The loss of a batch (N, features), computed in parts. `loss` is linear_cross_entropy.

    The backward pass computes each part's logits again.
    """
    from ..utils._checkpoint_runs import checkpoint

    rows, size = input.shape[0], options.rows_per_part(input.shape[0], input.shape[1], linear_weight.shape[0])
    dtype, is_narrow = linear_weight.dtype, linear_weight.dtype in (float16, bfloat16)
    kept = {
        "weight": weight,
        "reduction": "none" if reduction == "none" or is_narrow else "sum",
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
    }

    def part(x, w, t, b):
        return loss(x, w.to(dtype), t, linear_bias=None if b is None else b.to(linear_bias.dtype), **kept)

    wide_weight, wide_bias = linear_weight, linear_bias
    if is_narrow:  # the parts' gradients are added up in float32
        wide_weight, wide_bias = linear_weight.float(), None if linear_bias is None else linear_bias.float()
    found = [
        checkpoint(part, input[i : i + size], wide_weight, target[i : i + size], wide_bias, use_reentrant=False)
        for i in range(0, rows, size)
    ]
    if reduction == "none":
        return _C.torch.cat(found)
    losses = _C.torch.cat(found) if is_narrow else _C.torch.stack(found)
    total = losses.float().sum() if is_narrow else losses.sum()
    if reduction == "mean":
        total = total / _divisor(target, weight, ignore_index, total)
    return total.to(losses.dtype)


def _divisor(target: Tensor, weight: Tensor | None, ignore_index: int | None, like: Tensor) -> Tensor | int:
    """The number of rows, or the weight of the targets that are not ignored."""
    if target.is_floating_point():
        return target.shape[0]
    used = target != (-100 if ignore_index is None else ignore_index)
    if weight is None:
        return used.sum().to(like.dtype)
    return (weight.to(like.dtype)[_C.torch.where(used, target, 0).long()] * used).sum()
