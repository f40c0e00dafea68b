"""The parts of synchronised batch norm: statistics of a batch, their combination over ranks, and gradients.

Channels are dimension 1. Statistics have one element per channel, and those of several ranks are rows.
"""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .out_variant import exact_out_variant

_ops = _C.ops


def _per_channel(values: Tensor | None, like: Tensor) -> Tensor | None:
    """Reshapes one value per channel so that it broadcasts to the tensor."""
    return None if values is None else values.reshape(1, -1, *[1] * (like.dim() - 2))


def _others(input: Tensor) -> list[int]:
    return [0, *range(2, input.dim())]


def _move(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        running.copy_(running * (1 - momentum) + value.to(running.dtype) * momentum)


@exact_out_variant
def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """(input - mean) * invstd * weight + bias. ``eps`` is part of invstd and has no effect, as in PyTorch."""
    result = (input - _per_channel(mean, input)) * _per_channel(invstd, input)
    result = result if weight is None else result * _per_channel(weight, input)
    return (result if bias is None else result + _per_channel(bias, input)).to(input.dtype)


def batch_norm_update_stats(input: Tensor, running_mean, running_var, momentum: float) -> tuple[Tensor, Tensor]:
    """Returns the batch's (mean, variance), and moves the running statistics towards them."""
    variance, mean = _ops.var_mean(input, _others(input), correction=0, keepdim=False)
    count = input.numel() // input.shape[1]
    _move(running_mean, mean, momentum)
    _move(running_var, variance * (count / max(count - 1, 1)), momentum)
    return mean, variance


def batch_norm_gather_stats(
    input: Tensor, mean: Tensor, invstd: Tensor, running_mean, running_var, momentum: float, eps: float, count: int
) -> tuple[Tensor, Tensor]:
    """batch_norm_gather_stats_with_counts with the same number of elements per channel on each rank."""
    counts = _C.torch.full((mean.shape[0],), float(count), dtype=mean.dtype, device=mean.device)
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def batch_norm_gather_stats_with_counts(
    input: Tensor, mean: Tensor, invstd: Tensor, running_mean, running_var, momentum: float, eps: float, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Combines the ranks' statistics, of size (ranks, channels), to (mean, 1 / standard deviation); updates the running ones."""
    weight = counts.to(mean.dtype).reshape(-1, 1)
    total = weight.sum()
    combined = (mean * weight).sum(0) / total
    squares = ((invstd.pow(-2) - eps + (mean - combined).square()) * weight).sum(0)
    _move(running_mean, combined, momentum)
    _move(running_var, squares / (total - 1), momentum)
    return combined, (squares / total + eps).rsqrt()


def batch_norm_backward_reduce(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Returns (sum of grad_out, sum of grad_out * (input - mean), gradient of weight, gradient of bias), None if not requested."""
    sums = grad_out.sum(_others(input))
    products = (grad_out * (input - _per_channel(mean, input))).sum(_others(input))
    return (
        sums if input_g else None, products if input_g else None, products * invstd if weight_g else None, sums if bias_g else None,
    )  # fmt: skip


def batch_norm_backward_elemt(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, sum_dy: Tensor, sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:  # fmt: skip
    """The gradient of input. The sums are over all ranks; count has the number of elements per channel of each rank."""
    total = count.sum().to(mean.dtype)
    scale = invstd if weight is None else invstd * weight
    centred = (input - _per_channel(mean, input)) * _per_channel(invstd.square() * sum_dy_xmu / total, input)
    return ((grad_out - _per_channel(sum_dy / total, input) - centred) * _per_channel(scale, input)).to(input.dtype)
