"""Less common losses of torch.nn.functional: sequences, margins and triplets."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._layouts import require_not_nested
from .._options import check_floating, check_int64
from ._reduction import get_enum, resolve_reduction
from .losses import _reduce

_ops = _C.ops


def _lengths(lengths, batch: int, name: str) -> list[int]:
    if isinstance(lengths, Tensor) and (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype is _C.bool):
        raise RuntimeError(f"{name} must be integral")
    values = lengths.reshape(-1).tolist() if isinstance(lengths, Tensor) else list(lengths) if hasattr(lengths, "__iter__") else [lengths]
    if len(values) != batch:
        raise RuntimeError(f"input_lengths and target_lengths must be of size batch_size {batch}, got {len(values)}")
    return [int(v) for v in values]


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Connectionist temporal classification (Graves et al. 2006). Waits for the engine if lengths are tensors."""
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    batch = log_probs.shape[1]
    inputs, lengths = _lengths(input_lengths, batch, "input_lengths"), _lengths(target_lengths, batch, "target_lengths")
    losses = _ops.ctc_loss_forward(log_probs, targets.reshape(1, -1) if single else targets, inputs, lengths, blank)[0]
    if zero_infinity:
        losses = _C.torch.where(losses.isinf(), _C.torch.zeros_like(losses), losses)
    if single and reduction == "none":
        return losses.squeeze(0)
    if reduction == "mean":
        counts = _C.tensor([max(1, n) for n in lengths], dtype=losses.dtype, device=losses.device)
        return (losses / counts).mean()
    return _reduce(losses, reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight=None, size_average=None, reduce=None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The sum over all other classes of max(0, margin - input[target] + input[class])^p, divided by the class count."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    get_enum(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if input.dim() > 2 or target.dim() > 1 or target.numel() != (input.shape[0] if input.dim() == 2 else 1):
        raise RuntimeError(
            "target tensor should be 1-D with size equal to the batch size. "
            f"Expected target size [{input.shape[0]}] but got {list(target.shape)}"
        )
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and weight.numel() != rows.shape[1]:
        raise RuntimeError(f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}")
    check_floating("multi_margin_loss", input=input)
    check_int64("multi_margin_loss", "target", target)
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(f"[multi_margin_loss] expected weight to have input's dtype {input.dtype}, got {weight.dtype}")
    classes = target.reshape(-1, 1)
    gaps = (margin - rows.gather(1, classes) + rows).clamp_min(0) ** p
    if weight is not None:
        gaps = gaps * weight[classes]
    losses = gaps.scatter(1, classes, 0.0).sum(1) / rows.shape[1]
    return _reduce(losses if input.dim() == 2 or target.dim() == 1 else losses.squeeze(0), reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight=None, size_average=None, reduce=None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of the binary cross entropy."""
    require_not_nested("multilabel_soft_margin_loss", input, target)
    logs = _C.functional.logsigmoid
    losses = -(target * logs(input) + (1 - target) * logs(-input))
    losses = losses if weight is None else losses * weight
    return _reduce(losses.sum(-1) / input.shape[-1], resolve_reduction(size_average, reduce, reduction))


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean"):
    """The sum of max(0, 1 - input[target] + input[other]) over pairs of a target and another class.

    The targets of a row are the classes before the first -1. The sum is divided by the number of classes.
    """
    reduction = resolve_reduction(size_average, reduce, reduction)
    get_enum(reduction)
    if input.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    if input.dim() > 2 or input.numel() == 0 and input.shape[-1:] == (0,):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    check_floating("multilabel_margin_loss", input=input)
    check_int64("multilabel_margin_loss", "target", target)
    rows, labels = (t if t.dim() == 2 else t.reshape(1, -1) for t in (input, target))
    valid = (labels >= 0).to(_C.int64).cumprod(1).to(_C.bool)
    indices = labels.clamp_min(0)
    # Adds counts instead of writing flags, because a missing target has index 0, which may also be a target.
    is_target = _C.torch.zeros_like(rows).scatter_add(1, indices, valid.to(rows.dtype)) > 0
    gaps = (1 - rows.gather(1, indices).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    counts = valid.unsqueeze(2) & is_target.logical_not().unsqueeze(1)
    losses = gaps.masked_fill(counts.logical_not(), 0.0).sum((1, 2)) / rows.shape[1]
    return _reduce(losses if input.dim() == 2 else losses.squeeze(0), reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
) -> Tensor:
    """triplet_margin_loss with a user-defined distance."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    if distance_function is None:
        distance_function = _C.functional.pairwise_distance
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = _C.torch.minimum(far, distance_function(positive, negative))
    return _reduce((near - far + margin).clamp_min(0), reduction)
