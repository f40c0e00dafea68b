"""Batch norm over the batches of all ranks, from differentiable collectives."""

from __future__ import annotations

from ... import _C


def sync_batch_norm(input, weight, bias, running_mean, running_var, eps, momentum, group) -> _C.Tensor:  # noqa: A002
    """One collective in forward, which gathers the ranks' statistics, and one in backward. No call waits.

    Ranks may have batches of different sizes, including empty ones. All ranks must run both passes.
    """
    channels, dims = input.shape[1], [0, *range(2, input.dim())]
    count = input.numel() // max(channels, 1)
    if count == 1 and group.size() < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(input.shape)}")
    values = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    own_mean = values.sum(dims) / max(count, 1)
    own_squares = (values - _per_channel(own_mean, input)).square().sum(dims)
    own = _C.torch.cat([own_mean, own_squares, _C.torch.full([1], count, dtype=values.dtype, device=input.device)])
    gathered = _C.ops.group_gathered(
        own.unsqueeze(0), group._handle.select(0, 0), dim=0, ranks=group.size(), sums=True
    )
    means, counts = gathered[:, :channels], gathered[:, 2 * channels :]
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    squares = (gathered[:, channels : 2 * channels] + counts * (means - mean).square()).sum(0)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean.detach() * momentum)
        running_var.mul_(1 - momentum).add_((squares / (total - 1)).detach() * momentum)
    output = (values - _per_channel(mean, input)) * _per_channel((squares / total + eps).rsqrt(), input)
    if weight is not None:
        output = output * _per_channel(weight, input)
    if bias is not None:
        output = output + _per_channel(bias, input)
    return output.to(input.dtype)


def _per_channel(vector: _C.Tensor, like: _C.Tensor) -> _C.Tensor:
    """A vector with one element per channel, in a shape that broadcasts over a batch."""
    return vector.reshape(1, -1, *[1] * (like.dim() - 2))
