"""Batch norm with the mean and variance of all ranks' batches."""

from __future__ import annotations

from ... import _C
from ...autograd.function import Function, once_differentiable
from ...distributed import _collectives as collectives


class SyncBatchNormFunction(Function):
    """Two collectives per training step: the statistics in forward, two sums per channel in backward.

    Ranks may have batches of different sizes, including empty ones. All ranks must run both passes.
    """

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, momentum, group):  # noqa: A002
        channels, dims = input.shape[1], [0, *range(2, input.dim())]
        count = input.numel() // max(channels, 1)
        if count == 1 and group.size() < 2:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {tuple(input.shape)}"
            )
        values = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
        if count > 0:
            mean = values.mean(dims)
            squares = (values - _per_channel(mean, input)).square().sum(dims)
        else:
            mean = squares = _C.torch.zeros(channels, dtype=values.dtype, device=input.device)
        local = _C.torch.cat([mean, squares, _C.torch.full([1], count, dtype=values.dtype, device=input.device)])
        gathered = _C.torch.empty([group.size(), 2 * channels + 1], dtype=values.dtype, device=input.device)
        collectives.all_gather_into_tensor(gathered, local, group=group)
        means, counts = gathered[:, :channels], gathered[:, 2 * channels :]
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        squares = (gathered[:, channels : 2 * channels] + counts * (means - mean).square()).sum(0)
        inverse = (squares / total + eps).rsqrt()
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean * momentum)
            running_var.mul_(1 - momentum).add_(squares / (total - 1) * momentum)
        ctx.save_for_backward(values, weight, mean, inverse, total)
        ctx.group, ctx.dims, ctx.dtype = group, dims, input.dtype
        output = (values - _per_channel(mean, input)) * _per_channel(inverse, input)
        if weight is not None:
            output = output * _per_channel(weight, input)
        if bias is not None:
            output = output + _per_channel(bias, input)
        return output.to(input.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        values, weight, mean, inverse, total = ctx.saved_tensors
        grad = grad.to(values.dtype)
        centred = values - _per_channel(mean, values)
        sums = _C.torch.cat([grad.sum(ctx.dims), (grad * centred).sum(ctx.dims)])
        grad_bias, grad_weight = sums.chunk(2)
        grad_weight = grad_weight * inverse
        grad_input = None
        if ctx.needs_input_grad[0]:
            sums = sums.clone()
            collectives.all_reduce(sums, group=ctx.group)
            sum_grad, sum_product = sums.chunk(2)
            scale = inverse if weight is None else inverse * weight
            correction = centred * _per_channel(inverse.square() * sum_product / total, values)
            grad_input = (grad - _per_channel(sum_grad / total, values) - correction) * _per_channel(scale, values)
            grad_input = grad_input.to(ctx.dtype)
        if weight is None:
            return grad_input, None, None, None, None, None, None, None
        return grad_input, grad_weight.to(weight.dtype), grad_bias.to(weight.dtype), None, None, None, None, None


def _per_channel(vector: _C.Tensor, like: _C.Tensor) -> _C.Tensor:
    """A vector with one element per channel, in a shape that broadcasts over a batch."""
    return vector.reshape(1, -1, *[1] * (like.dim() - 2))
