"""Losses of torch.nn.functional that have more arguments than their operators (`size_average`, `reduce`, weights of
elements) or are composed of several operators."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import broadcast_tensors
from .._layouts import strided
from .._options import check_floating
from . import _chunked_cross_entropy as chunks
from ._reduction import get_enum, resolve_reduction

_ops = _C.ops

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip


def _reduce(losses: Tensor, reduction: str) -> Tensor:
    number = get_enum(reduction)
    return losses if number == 0 else losses.mean() if number == 1 else losses.sum()


# -- differences


def _warn_different_sizes(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
            "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The arguments as PyTorch's loss receives them. Their sizes matter for the dtype: a tensor without dimensions does not
    promote another one.
    """
    if input.dtype == target.dtype or (input.dim() == 0) == (target.dim() == 0):
        return input, target
    return broadcast_tensors(input, target)


def _weighted(losses: Tensor, input: Tensor, weight: Tensor, reduction: str, by_weight: bool) -> Tensor:
    """Weights and reduces the losses. With `by_weight`, the mean divides by the sum of the weights."""
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses.sum() / weight.sum() if by_weight and get_enum(reduction) == 1 else _reduce(losses, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The absolute differences."""
    _warn_different_sizes(input, target)
    input, target = _broadcast(input, target)
    reduction = resolve_reduction(size_average, reduce, reduction)
    if weight is None:
        return _ops.l1_loss(input, target, reduction=reduction)
    return _weighted((input - target).abs(), input, weight, reduction, True)  # autocast does not cast it, as l1_loss()


def mse_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The squared differences."""
    _warn_different_sizes(input, target)
    input, target = _broadcast(input, target)
    reduction = resolve_reduction(size_average, reduce, reduction)
    if weight is None:
        return _ops.mse_loss(input, target, reduction=reduction)
    return _weighted((input - target).pow(2), input, weight, reduction, True)  # autocast does not cast it, as mse_loss()


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) where d = |input - target| is less than beta, d - beta / 2 elsewhere."""
    _warn_different_sizes(input, target)
    input, target = _broadcast(input, target)
    return _ops.smooth_l1_loss(input, target, reduction=resolve_reduction(size_average, reduce, reduction), beta=beta)


def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """d^2 / 2 where d = |input - target| is less than delta, delta (d - delta / 2) elsewhere."""
    _warn_different_sizes(input, target)
    if weight is None:
        return _ops.huber_loss(input, target, reduction=reduction, delta=delta)
    return _weighted(_ops.huber_loss(input, target, reduction="none", delta=delta), input, weight, reduction, False)


# -- entropies


def kl_div(input, target, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (log(target) - input), 0 where the target is 0."""
    if size_average is None and reduce is None and reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only "
            "by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    resolved = resolve_reduction(size_average, reduce, reduction)
    if resolved == "batchmean" and input.dim() == 0:  # there is no batch to divide by
        resolved = "sum"
    loss = _ops.kl_div(input, target, reduction=resolved, log_target=log_target)
    # PyTorch divides by the batch size for "batchmean" also if size_average or reduce replace the reduction.
    return loss / input.shape[0] if reduction == "batchmean" != resolved and input.dim() else loss


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input)), with logarithms clamped at -100."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    return _ops.binary_cross_entropy(input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow; pos_weight scales the target term."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return _ops.binary_cross_entropy_with_logits(input, target, weight, reduction=reduction, pos_weight=pos_weight)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
) -> Tensor:
    """The negative log likelihood of log_softmax(input, 1); targets are class indices or probabilities.

    With the ignore_index -2**63, no target is ignored: this one is out of bounds, too.
    """
    reduction = resolve_reduction(size_average, reduce, reduction)
    if target.dim() == input.dim() and target.shape == input.shape:
        if not target.is_floating_point():
            raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    if input.dim() > 1 and target.dim() and target.shape[0] != input.shape[0]:
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]}).")
    if target.is_floating_point():
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, or probabilities of the input's size {list(input.shape)}, "
            f"got {target.dtype} of size {list(target.shape)}"
        )
    _check_constant(weight, input)
    return _ops.cross_entropy(
        input, _classes(target), weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def _check_constant(weight: Any, input: Any) -> None:
    """Refuses a weight per class that requires a gradient, because losses of class indices have none by it."""
    if isinstance(weight, Tensor) and weight.requires_grad and _C.is_grad_enabled():
        function = "nll_loss2d_forward" if input.dim() > 2 else "nll_loss_forward"
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument 'weight'. This input cannot have "
            "requires_grad True."
        )


def _classes(target: Any) -> Any:
    """The target's classes as the engine's operators read them; PyTorch accepts uint8, too."""
    return target.to(_C.int64) if isinstance(target, Tensor) and target.dtype is _C.uint8 else target


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """cross_entropy of a linear layer's outputs. linear_weight has shape (classes, *outputs, features).

    `options`, a torch.nn.LinearCrossEntropyOptions, computes the logits for parts of the batch, to save memory.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    sizes, features = tuple(linear_weight.shape[:-1]), linear_weight.shape[-1]
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if not sizes:
        raise RuntimeError("expected linear_weight with dimensionality at least 2, got 1")
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {features}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != sizes:
        raise RuntimeError(f"expected linear_bias shape {sizes}, got {tuple(linear_bias.shape)}")
    if input.dim() == 1 and len(sizes) > 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    logits_shape = (*input.shape[:-1], *sizes)
    if ignore_index is not None and tuple(target.shape) == logits_shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None and chunks.applies(input, linear_weight, target):
        return chunks.in_parts(
            linear_cross_entropy, input, linear_weight, target, linear_bias, weight, reduction, ignore_index,
            label_smoothing, options,
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    if linear_weight.layout == strided:
        logits = _ops.linear(input, linear_weight.reshape(-1, features), bias).reshape(logits_shape)
    else:
        logits = _ops.linear(input, linear_weight, bias)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)


def _soft_cross_entropy(input, target, weight, reduction, label_smoothing) -> Tensor:
    get_enum(reduction)
    if input.dim() == 0:
        raise IndexError("Dimension specified as 1 but tensor has no dimensions")
    dim = 1 if input.dim() > 1 else 0
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if weight is not None and weight.shape != input.shape[dim : dim + 1]:
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {input.shape[dim]} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )
    if label_smoothing > 0:
        classes = input.shape[dim]
        target = target * (1 - label_smoothing) + (label_smoothing / classes if classes != 0 else 0.0)
    logs = _ops.log_softmax(input, dim)
    if weight is not None:
        logs = logs * weight.reshape([-1 if d == dim else 1 for d in range(input.dim())])
    if target.layout != strided and reduction != "none":  # a sum of one dimension of a sparse tensor is sparse, and has no mean
        total = -(logs * target).sum()
        return total / (input.numel() // input.shape[dim]) if reduction == "mean" else total
    losses = -(logs * target).sum(dim)
    if reduction == "mean":
        return losses.mean() if input.shape[dim] != 0 else losses.sum() / 0  # NaN
    return losses.sum() if reduction == "sum" else losses


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean") -> Tensor:
    """The negative log likelihood; input contains log probabilities."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    _check_constant(weight, input)
    return _ops.nll_loss(input, _classes(target), weight=weight, ignore_index=ignore_index, reduction=reduction)


# -- losses with margins and distributions


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """max(0, -target (input1 - input2) + margin)."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _ops.margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """input where the target is 1, max(0, margin - input) where the target is -1."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _ops.hinge_embedding_loss(input, target, margin=margin, reduction=reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where the target is -1."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if {input1.dim(), input2.dim()} != {target.dim() + 1}:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    return _ops.cosine_embedding_loss(input1, input2, target, margin=margin, reduction=reduction)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _ops.triplet_margin_loss(
        anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap, reduction=reduction
    )


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """log(1 + exp(-target input))."""
    return _ops.soft_margin_loss(input, target, reduction=resolve_reduction(size_average, reduce, reduction))


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
) -> Tensor:
    """The negative log likelihood of a Poisson distribution."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _ops.poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps, reduction=reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean") -> Tensor:
    """The negative log likelihood of normal distributions of the given variances."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = _C.torch.ones_like(input) * float(var)
    if var.shape != input.shape:  # one variance per row
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.dim() != input.dim() or sum(y for x, y in zip(input.shape, var.shape) if x != y) != 1:
            raise ValueError("var is of incorrect size")
    check_floating("gaussian_nll_loss", var=var)
    return _ops.gaussian_nll_loss(input, target, var, full=full, eps=eps, reduction=reduction)
