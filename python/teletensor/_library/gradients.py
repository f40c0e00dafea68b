"""PyTorch's operators of gradients (torch.ops.aten.gelu_backward, ...), as calls of the engine's or of the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .places import REDUCTIONS, functional, public

ops = _C.ops


def _gradients(function: Callable[..., Tensor], grad: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """The gradients of a function's inputs, by running it and its nodes. They have gradients if the arguments have."""
    import teletensor

    is_recorded = _C.is_grad_enabled() and any(t.requires_grad for t in (grad, *inputs))
    with teletensor.enable_grad():
        leaves = [_C.ops.alias(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs]
        result = function(*leaves)
    return teletensor.autograd.grad([result], leaves, [grad], create_graph=is_recorded)


def _of(name: str, options: Sequence[str] = ()) -> Callable:
    """The operator (grad, self, options...) of the gradient of a function of torch.nn.functional."""

    def call(grad: Tensor, self: Tensor, *args: Any) -> Tensor:
        return _gradients(lambda x: functional(name)(x, **dict(zip(options, args))), grad, self)[0]

    return call


def _loss(name: str, *options: str) -> Callable:
    """The operator (grad, self, target, options...) of the gradient of a loss. As in PyTorch, grad may have the size of the
    loss without its reduction.
    """

    def call(grad: Tensor, self: Tensor, target: Tensor, *args: Any) -> Tensor:
        values = dict(zip(options, args))
        reduction = REDUCTIONS[values.pop("reduction", 1)]

        def losses(x: Tensor) -> Tensor:
            return functional(name)(x, target, **values, reduction="none")

        sizes = public("broadcast_shapes")(self.shape, target.shape)
        found = _gradients(losses, grad.expand(sizes), self)[0]
        return found / sizes.numel() if reduction == "mean" else found

    return call


def _gelu(grad: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return (ops.gelu_tanh_backward if approximate == "tanh" else ops.gelu_erf_backward)(grad, self)


def _elu(grad: Tensor, alpha, scale, input_scale, is_result: bool, self_or_result: Tensor) -> Tensor:
    if is_result and alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. This is caused by calling "
            "in-place forward function with a negative slope, please call out-of-place version instead."
        )
    factor = alpha * scale
    below = self_or_result + factor if is_result else (self_or_result * input_scale).exp() * factor
    return ops.where(self_or_result <= 0, grad * input_scale * below, grad * scale)


def _leaky_relu(grad: Tensor, self: Tensor, negative_slope, self_is_result: bool) -> Tensor:
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This is caused by "
            "calling in-place forward function with a negative slope, please call out-of-place version instead."
        )
    return ops.leaky_relu_backward(grad, self, negative_slope)


def _shrink(name: str) -> Callable:
    return lambda grad, self, lambd: _gradients(lambda x: functional(name)(x, lambd), grad, self)[0]


def _logit(grad: Tensor, self: Tensor, eps=None) -> Tensor:
    import teletensor

    return _gradients(lambda x: teletensor.logit(x, eps), grad, self)[0]


def _prelu(grad: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    is_positive = self > 0
    return ops.where(is_positive, grad, weight * grad), ops.where(is_positive, 0.0, self * grad)


def _log_softmax(grad: Tensor, output: Tensor, dim: int, input_dtype) -> Tensor:
    return ops.log_softmax_backward(grad, output, dim).to(input_dtype)


def _nll_loss(grad: Tensor, self: Tensor, target: Tensor, weight, reduction: int, ignore_index: int, total_weight: Tensor) -> Tensor:
    return ops.nll_loss_backward(grad, target, weight, total_weight, list(self.shape), ignore_index, REDUCTIONS[reduction])


def _convolution(
    grad: Tensor, input: Tensor, weight: Tensor, bias_sizes, stride, padding, dilation, transposed: bool, output_padding,  # noqa: A002
    groups: int, output_mask,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    import teletensor

    found: list[Tensor | None] = [None, None, None]
    wanted = [i for i in (0, 1) if output_mask[i]]
    if wanted:

        def run(*leaves: Tensor) -> Tensor:
            operands = [input, weight]
            for i, leaf in zip(wanted, leaves):
                operands[i] = leaf
            return teletensor.convolution(*operands, None, stride, padding, dilation, transposed, output_padding, groups)

        for i, value in zip(wanted, _gradients(run, grad, *((input, weight)[i] for i in wanted))):
            found[i] = value
    if output_mask[2]:
        if bias_sizes is not None and list(bias_sizes) != [grad.size(1)]:
            raise RuntimeError(f"[aten::convolution_backward] expected bias_sizes [{grad.size(1)}], got {list(bias_sizes)}")
        found[2] = grad.sum([d for d in range(grad.dim()) if d != 1])
    return tuple(found)


def _adaptive_avg_pool(grad: Tensor, self: Tensor) -> Tensor:
    return ops.adaptive_avg_pool2d_backward(grad, list(self.shape))


def _adaptive_avg_pool3d(grad: Tensor, self: Tensor) -> Tensor:
    return _gradients(lambda x: functional("adaptive_avg_pool3d")(x, tuple(grad.shape[-3:])), grad, self)[0]


def _avg_pool(name: str) -> Callable:
    def call(grad: Tensor, self: Tensor, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) -> Tensor:
        args = (kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override)
        return _gradients(lambda x: functional(name)(x, *args), grad, self)[0]

    return call


def _max_pool(dims: int) -> Callable:
    def call(grad: Tensor, self: Tensor, kernel_size, stride, padding, dilation, ceil_mode: bool, indices: Tensor) -> Tensor:
        del kernel_size, stride, padding, dilation, ceil_mode  # the indices have them
        planes = self.shape[: self.dim() - dims]
        flat = grad.new_zeros((*planes, self.shape[self.dim() - dims :].numel()))
        return flat.scatter_add(-1, indices.flatten(-dims), grad.flatten(-dims)).reshape(self.shape)

    return call


def _embedding(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool = False) -> Tensor:
    if not scale_grad_by_freq and not sparse:
        return ops.embedding_backward(grad, indices, num_weights, padding_idx)
    weight = grad.new_zeros((num_weights, grad.size(-1)))
    options = {"padding_idx": None if padding_idx < 0 else padding_idx, "scale_grad_by_freq": scale_grad_by_freq, "sparse": sparse}
    return _gradients(lambda w: functional("embedding")(indices, w, **options), grad, weight)[0]


def _masked(results: Sequence[Tensor], output_mask: Sequence[bool]) -> tuple[Tensor | None, ...]:
    return tuple(r if wanted else None for r, wanted in zip(results, output_mask))


def _group_norm(grad: Tensor, input: Tensor, mean, rstd, weight, N: int, C: int, HxW: int, group: int, output_mask) -> tuple:  # noqa: A002, N803
    if input.numel() != N * C * HxW:
        raise RuntimeError(f"[aten::native_group_norm_backward] expected {N * C * HxW} elements, got {input.numel()}")
    return _masked(ops.group_norm_backward(grad, input, weight, mean, rstd, group), output_mask)


def _layer_norm(grad: Tensor, input: Tensor, normalized_shape, mean, rstd, weight, bias, output_mask) -> tuple:  # noqa: A002
    del bias  # no gradient depends on it
    return _masked(ops.layer_norm_backward(grad, input, weight, mean, rstd, list(normalized_shape)), output_mask)


def _batch_norm(
    grad: Tensor, input: Tensor, weight, running_mean, running_var, save_mean, save_invstd, train: bool, eps: float, output_mask  # noqa: A002
) -> tuple:  # fmt: skip
    mean, rstd = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    return _masked(ops.batch_norm_backward(grad, input, weight, mean, rstd, train), output_mask)


def _rms_norm(grad: Tensor, input: Tensor, normalized_shape, rstd, weight, output_mask) -> tuple:  # noqa: A002
    return _masked(ops.rms_norm_backward(grad, input, weight, rstd.flatten(), list(normalized_shape)), output_mask)


def _padded(mode: str) -> Callable:
    def call(grad: Tensor, self: Tensor, padding) -> Tensor:
        return _gradients(lambda x: functional("pad")(x, list(padding), mode=mode), grad, self)[0]

    return call


def _upsample(mode: str, is_aligned: bool) -> Callable:
    def call(grad: Tensor, output_size, input_size, *rest: Any, **named: Any) -> Tensor:
        options = dict(zip(("align_corners", "scales_h", "scales_w") if is_aligned else ("scales_h", "scales_w"), rest)) | named
        if any(options.pop(name, None) is not None for name in ("scales_h", "scales_w")):
            raise NotImplementedError(f"[torch.ops.aten.upsample_{mode}2d_backward] expected an output size without scales")
        zeros = grad.new_zeros(tuple(input_size))
        return _gradients(lambda x: functional("interpolate")(x, tuple(output_size), mode=mode, **options), grad, zeros)[0]

    return call


def _into_zeros(write: Callable[..., Tensor]) -> Callable:
    """The gradient of a view (grad, the input's sizes, ...): the gradient's elements among zeros."""
    return lambda grad, sizes, *args: write(grad.new_zeros(tuple(sizes)), grad, *args)


def _gather(grad: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    if sparse_grad:
        raise NotImplementedError("[aten::gather_backward] expected sparse_grad to be False, got True")
    return grad.new_zeros(self.shape).scatter_add(dim, index, grad)


def _unfold(grad: Tensor, sizes, dim: int, size: int, step: int) -> Tensor:
    return _gradients(lambda x: x.unfold(dim, size, step), grad, grad.new_zeros(tuple(sizes)))[0]


def _trace(grad: Tensor, sizes) -> Tensor:
    if len(sizes) != 2:
        raise RuntimeError("expected matrix input")
    ones = grad.new_zeros(tuple(sizes)).fill_diagonal_(1)
    return grad * ones


def _selected(grad: Tensor, dim: int, indices: Tensor, sizes, keepdim: bool) -> Tensor:
    if not keepdim and len(sizes) > 0:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(tuple(sizes)).scatter(dim, indices, grad)


OPERATORS: dict[str, Callable] = {
    "_adaptive_avg_pool2d_backward": _adaptive_avg_pool,
    "_adaptive_avg_pool3d_backward": _adaptive_avg_pool3d,
    "_fused_rms_norm_backward": _rms_norm,
    "_log_softmax_backward_data": _log_softmax,
    "_prelu_kernel_backward": _prelu,
    "avg_pool2d_backward": _avg_pool("avg_pool2d"),
    "avg_pool3d_backward": _avg_pool("avg_pool3d"),
    "binary_cross_entropy_backward": _loss("binary_cross_entropy", "weight", "reduction"),
    "convolution_backward": _convolution,
    "diagonal_backward": _into_zeros(lambda zeros, grad, *args: zeros.diagonal_scatter(grad, *args)),
    "elu_backward": _elu,
    "embedding_backward": _embedding,
    "embedding_dense_backward": _embedding,
    "gather_backward": _gather,
    "gelu_backward": _gelu,
    "glu_backward": _of("glu", ("dim",)),
    "hardshrink_backward": _shrink("hardshrink"),
    "hardsigmoid_backward": _of("hardsigmoid"),
    "hardswish_backward": _of("hardswish"),
    "hardtanh_backward": _of("hardtanh", ("min_val", "max_val")),
    "huber_loss_backward": _loss("huber_loss", "reduction", "delta"),
    "index_select_backward": _into_zeros(lambda zeros, grad, dim, index: zeros.index_add(dim, index, grad)),
    "leaky_relu_backward": _leaky_relu,
    "log_sigmoid_backward": lambda grad, self, buffer: _of("logsigmoid")(grad, self),  # noqa: ARG005 - of the CPU kernel
    "logit_backward": _logit,
    "masked_select_backward": lambda grad, input, mask: ops.zeros_like(input).masked_scatter(mask, grad),
    "max_pool2d_with_indices_backward": _max_pool(2),
    "max_pool3d_with_indices_backward": _max_pool(3),
    "mish_backward": _of("mish"),
    "mse_loss_backward": _loss("mse_loss", "reduction"),
    "native_batch_norm_backward": _batch_norm,
    "native_group_norm_backward": _group_norm,
    "native_layer_norm_backward": _layer_norm,
    "nll_loss2d_backward": _nll_loss,
    "nll_loss_backward": _nll_loss,
    "select_backward": _into_zeros(lambda zeros, grad, dim, index: zeros.select_scatter(grad, dim, index)),
    "sigmoid_backward": lambda grad, output: ops.sigmoid_backward(grad, output),
    "silu_backward": lambda grad, self: ops.silu_backward(grad, self),
    "slice_backward": _into_zeros(lambda zeros, grad, *args: zeros.slice_scatter(grad, *args)),
    "smooth_l1_loss_backward": _loss("smooth_l1_loss", "reduction", "beta"),
    "soft_margin_loss_backward": _loss("soft_margin_loss", "reduction"),
    "softplus_backward": _of("softplus", ("beta", "threshold")),
    "softshrink_backward": _shrink("softshrink"),
    "tanh_backward": lambda grad, output: ops.tanh_backward(grad, output),
    "threshold_backward": lambda grad, self, threshold: ops.threshold_backward(grad, self, threshold),
    "trace_backward": _trace,
    "unfold_backward": _unfold,
    "upsample_bilinear2d_backward": _upsample("bilinear", True),
    "upsample_nearest2d_backward": _upsample("nearest", False),
    "value_selecting_reduction_backward": _selected,
    **{f"reflection_pad{n}d_backward": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d_backward": _padded("replicate") for n in (1, 2, 3)},
}
