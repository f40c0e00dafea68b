"""Less common losses of torch.nn.functional: sequences, margins and triplets."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._layouts import require_not_nested
from ._reduction import resolve_reduction
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
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    return _ops.multi_margin_loss(input, target, p=int(p), margin=margin, weight=weight, reduction=reduction)


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
    return _ops.multilabel_margin_loss(input, target, reduction=resolve_reduction(size_average, reduce, reduction))


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
