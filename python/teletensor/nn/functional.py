"""torch.nn.functional: the operators PyTorch shows there, and what takes flags that the engine does not.

Operators are generated; a function is written here only where PyTorch's arguments say more than
the operator's (``inplace``, ``training``, padding by name).
"""

from __future__ import annotations

import array
import functools
import math

from .. import _C
from .._C import Tensor
from .._combining import pdist  # noqa: F401
from .._landing import lands, lands_exactly
from . import _reduction as _Reduction  # noqa: F401, N812 - PyTorch's name
from .attention import multi_head_attention_forward, scaled_dot_product_attention  # noqa: F401
from .bags import embedding_bag, share_gradients, shorten_rows
from .losses import (  # noqa: F401
    ctc_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss, triplet_margin_with_distance_loss,
)  # fmt: skip
from .resampling import fold, interpolate, unfold, upsample, upsample_bilinear, upsample_nearest  # noqa: F401

globals().update({name: fn for name, fn in vars(_C.functional).items() if not name.startswith("_")})
_ops = _C.ops
from .pooling import (  # noqa: E402, F401 - max_pool3d takes the operator's place
    adaptive_max_pool1d, adaptive_max_pool3d, fractional_max_pool2d, fractional_max_pool3d, local_response_norm,
    lp_pool1d, lp_pool2d, lp_pool3d, max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d, one_size,
)  # fmt: skip


def _with_inplace(name: str):
    """An activation that takes ``inplace=True``."""
    function = getattr(_C.functional, name)

    def activation(input: Tensor, *args, inplace: bool = False, **kwargs) -> Tensor:
        return function(input, *args, out=input, **kwargs) if inplace else function(input, *args, **kwargs)

    activation.__name__, activation.__doc__ = name, function.__doc__
    return activation


for _name in (
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardsigmoid", "hardswish",
    "threshold", "softplus",
):  # fmt: skip
    globals()[_name] = _with_inplace(_name)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input within [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _C.functional.hardtanh(input, min_val, max_val, out=input if inplace else None)


@lands_exactly
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Nearer to 0 by lambd, and 0 within it."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _C.functional.softshrink(input, lambd)


def _in_place(name: str):
    function = globals()[name]

    def activation(input: Tensor, *args, **kwargs) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)

    activation.__name__, activation.__doc__ = f"{name}_", f"{name}, in place."
    return activation


for _name in ("relu", "leaky_relu", "elu", "selu", "celu", "hardtanh", "threshold"):
    globals()[f"{_name}_"] = _in_place(_name)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return _C.torch.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input))."""
    return _C.torch.sigmoid(input)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """Leaky relu whose slope is drawn for every element in training, the middle otherwise."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    slope = _C.torch.rand_like(input) * (upper - lower) + lower if training else (lower + upper) / 2
    result = _C.torch.where(input >= 0, input, input * slope)
    return input.copy_(result) if inplace else result


def softmin(input: Tensor, dim: int | None = None, dtype=None) -> Tensor:
    """softmax of -input."""
    return softmax(-input, dim, dtype=dtype)


def _softmax_dim(ndim: int) -> int:
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """exp(input) / sum(exp(input), dim)."""
    return _ops.softmax(input, _softmax_dim(input.dim()) if dim is None else dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """log(softmax(input, dim)), computed stably."""
    return _ops.log_softmax(input, _softmax_dim(input.dim()) if dim is None else dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Samples from the Gumbel-Softmax distribution (Jang et al. 2016; Maddison et al. 2016)."""
    uniform = _C.torch.rand_like(logits).clamp(1e-20, 1.0)
    soft = softmax((logits - (-uniform.log()).clamp_min(1e-20).log()) / tau, dim)
    if not hard:
        return soft
    chosen = _C.torch.zeros_like(logits).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


# -- dropout


def _checked(p: float) -> float:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the rest by 1 / (1 - p), in training."""
    if not training or _checked(p) == 0.0:
        return input
    result = _ops.dropout(input, p, True)
    return input.copy_(result) if inplace else result


def _kept(input: Tensor, sizes, p: float) -> Tensor:
    """1 with probability 1 - p, else 0; of complex numbers both parts go."""
    drawn = _C.torch.rand(list(sizes), dtype=input.dtype.to_real(), device=input.device)
    return (drawn >= p).to(input.dtype)


def _channels(input: Tensor) -> list[int]:
    return [*input.shape[:2], *[1] * (input.dim() - 2)]


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if not training or _checked(p) == 0.0:
        return input
    result = input * _kept(input, _channels(input), p) * (1 / (1 - p) if p < 1 else 0.0)
    return input.copy_(result) if inplace else result


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels with probability p."""
    return _feature_dropout(input, p, training, inplace)


dropout2d = dropout3d = feature_dropout = dropout1d


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of selu's outputs (Klambauer et al. 2017)."""
    if not training or _checked(p) == 0.0:
        return input
    if p == 1:
        return input * 0
    saturated = -1.7580993408473766
    a = ((1 - p) * (1 + p * saturated**2)) ** -0.5
    kept = _kept(input, input.shape, p)
    return (input * kept + saturated * (1 - kept)) * a - a * p * saturated


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels."""
    if not training or _checked(p) == 0.0:
        return input
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    saturated = -1.7580993408473766
    a = 0.0 if p == 1 else ((1 - p) * (1 + p * saturated**2)) ** -0.5
    kept = _kept(input, _channels(input), p)
    result = (input * kept + saturated * (1 - kept)) * a - a * p * saturated
    return input.copy_(result) if inplace else result


# -- convolution


def _tuple(value, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


def _convolution(name: str, n: int):
    operator = getattr(_ops, name)

    def convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Tensor:
        if isinstance(padding, str):
            if padding == "valid":
                padding = 0
            elif padding == "same":
                if any(s != 1 for s in _tuple(stride, n)):
                    raise RuntimeError("padding='same' is not supported for strided convolutions")
                total = [d * (k - 1) for d, k in zip(_tuple(dilation, n), weight.shape[2:])]
                padding = [t // 2 for t in total]
                if any(t % 2 for t in total):
                    input = pad(input, [v for t in reversed(total) for v in (0, t % 2)])
            else:
                raise RuntimeError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
        return operator(
            input, weight, bias, _tuple(stride, n), _tuple(padding, n), _tuple(dilation, n), groups
        )

    convolution.__name__, convolution.__doc__ = name, operator.__doc__
    return convolution


conv1d, conv2d, conv3d = _convolution("conv1d", 1), _convolution("conv2d", 2), _convolution("conv3d", 3)


# -- pooling


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool2d, with the places of its values."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest value of each window."""
    args = (input, kernel_size, stride if stride is not None else kernel_size, padding, dilation, ceil_mode)
    return tuple(_ops.max_pool2d_with_indices(*args)) if return_indices else _ops.max_pool2d(*args)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest value of each window."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(input.shape)}"
        )
    single = lambda v: v if isinstance(v, int) else v[0]  # noqa: E731
    stride = kernel_size if stride is None else stride
    result = max_pool2d(
        input.unsqueeze(-2), (1, single(kernel_size)), (1, single(stride)), (0, single(padding)),
        (1, single(dilation)), ceil_mode, return_indices,
    )  # fmt: skip
    return tuple(r.squeeze(-2) for r in result) if return_indices else result.squeeze(-2)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) -> Tensor:
    """The mean of each window."""
    single = lambda v: v if isinstance(v, int) else v[0]  # noqa: E731
    stride = kernel_size if stride is None else stride
    pooled = _ops.avg_pool2d(
        input.unsqueeze(-2), (1, single(kernel_size)), (1, single(stride)), (0, single(padding)), ceil_mode,
        count_include_pad,
    )  # fmt: skip
    return pooled.squeeze(-2)


def adaptive_avg_pool1d(input, output_size: int) -> Tensor:
    """The means of windows such that output_size remain."""
    return _ops.adaptive_avg_pool2d(input.unsqueeze(-2), (1, one_size("adaptive_avg_pool1d", output_size))).squeeze(-2)


def _adaptive_size(input: Tensor, output_size, n: int = 2) -> list[int]:
    if input.dim() <= n:
        raise ValueError(f"Input dimension should be at least {n + 1}, got {input.dim()}")
    sizes = _tuple(output_size, n) if output_size is not None else (None,) * n
    return [input.shape[i - n] if s is None else s for i, s in enumerate(sizes)]


def adaptive_avg_pool2d(input, output_size) -> Tensor:
    """The means of windows such that output_size remain; None keeps a size."""
    return _ops.adaptive_avg_pool2d(input, _adaptive_size(input, output_size))


def adaptive_avg_pool3d(input, output_size) -> Tensor:
    """The means of windows such that output_size remain; None keeps a size."""
    return _ops.adaptive_avg_pool3d(input, _adaptive_size(input, output_size, 3))


def adaptive_max_pool2d(input, output_size, return_indices: bool = False):
    """The largest values of windows such that output_size remain; None keeps a size."""
    size = _adaptive_size(input, output_size)
    if return_indices:
        return tuple(_ops.adaptive_max_pool2d_with_indices(input, size))
    return _ops.adaptive_max_pool2d(input, size)


# -- losses


def _legacy_reduction(size_average, reduce, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
) -> Tensor:
    """The negative log likelihood of log_softmax(input, 1): targets are class indices or probabilities."""
    reduction = _legacy_reduction(size_average, reduce, reduction)
    if target.is_floating_point():
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    return _ops.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """cross_entropy of a linear layer's outputs; linear_weight is (classes, ..., features)."""
    *classes, features = linear_weight.shape
    if input.dim() not in (1, 2):
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.dim()}")
    if input.dim() == 1 and len(classes) > 1:
        raise RuntimeError(f"linear_cross_entropy: a weight of sizes {list(linear_weight.shape)} requires batched input")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _ops.linear(input, linear_weight.reshape(-1, features), bias).reshape(*input.shape[:-1], *classes)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)


def _soft_cross_entropy(input, target, weight, reduction, label_smoothing) -> Tensor:
    dim = 1 if input.dim() > 1 else 0
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[dim]
    logs = log_softmax(input, dim)
    if weight is not None:
        logs = logs * weight.reshape([-1 if d == dim else 1 for d in range(input.dim())])
    losses = -(logs * target).sum(dim)
    if reduction == "mean":
        return losses.sum() / max(1, losses.numel())
    return losses.sum() if reduction == "sum" else losses


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean") -> Tensor:
    """The negative log likelihood: input holds log probabilities."""
    reduction = _legacy_reduction(size_average, reduce, reduction)
    return _ops.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def _reduce(losses: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return losses if reduction == "none" else getattr(losses, reduction)()


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """max(0, -target (input1 - input2) + margin)."""
    return _reduce((-target * (input1 - input2) + margin).clamp_min(0), _legacy_reduction(size_average, reduce, reduction))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """input where the target is 1, max(0, margin - input) where it is -1."""
    losses = _C.torch.where(target != -1, input, 0.0) + _C.torch.where(target != 1, (margin - input).clamp_min(0), 0.0)
    return _reduce(losses, _legacy_reduction(size_average, reduce, reduction))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    input1, input2 = (t if t.is_floating_point() else t.to(_C.default_dtype()) for t in (input1, input2))
    cosine = cosine_similarity(input1, input2, -1)  # noqa: F821 - an operator
    return _reduce(_C.torch.where(target == 1, 1 - cosine, (cosine - margin).clamp_min(0)), reduction)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False) -> Tensor:
    """The p-norm of the rows' differences."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean", **legacy):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = _C.torch.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduce((near - far + margin).clamp_min(0), reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """log(1 + exp(-target input))."""
    return _reduce((-target * input).exp().log1p(), _legacy_reduction(size_average, reduce, reduction))


def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction="mean", **legacy) -> Tensor:
    """The negative log likelihood of a Poisson distribution."""
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + _C.torch.where(target > 1, stirling, 0.0)
    return _reduce(losses, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean") -> Tensor:
    """The negative log likelihood of normal distributions of the given variances."""
    if not isinstance(var, Tensor):
        var = _C.torch.full(input.shape, float(var), dtype=input.dtype, device=input.device)
    if var.shape != input.shape:  # of one variance a row, or for all its elements
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.dim() != input.dim() or var.shape[:-1] != input.shape[:-1] or var.shape[-1] != 1:
            raise ValueError("var is of incorrect size")
    # The gradient is as if nothing was clamped.
    var = var + (var.detach().clamp_min(eps) - var.detach())
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduce(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


# -- norms, embeddings, shapes


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalises channels by the batch's statistics (training) or the running ones."""
    if training and input.numel() and input.dim() > 1 and input.numel() // max(1, input.shape[1]) <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return _ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
) -> Tensor:
    """Normalises every channel of every sample by itself."""
    if not use_input_stats:
        return _ops.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    result = _ops.group_norm(input, input.shape[1], weight, bias, eps)
    if running_mean is not None:
        from .._grad_mode import no_grad

        with no_grad():
            rest = [0, *range(2, input.dim())]
            samples = math.prod(input.shape[2:])
            per_sample = input.var(rest[1:], unbiased=samples > 1).mean(0)
            running_mean.lerp_(input.mean(rest).to(running_mean.dtype), momentum)
            running_var.lerp_(per_sample.to(running_var.dtype), momentum)
    return result


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5) -> Tensor:
    """Normalises the last dimensions."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    return _ops.layer_norm(input, shape, weight, bias, eps)


def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
) -> Tensor:
    """Rows of weight by index."""
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    count = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += count
    if max_norm is not None:
        shorten_rows(weight, input, max_norm, norm_type)
    rows = _ops.embedding(weight, input, padding_idx)
    return share_gradients(rows, input, weight.shape[0]) if scale_grad_by_freq else rows


@lands
def normalize(input, p=2.0, dim=1, eps=1e-12) -> Tensor:
    """input / max(norm, eps) along dim."""
    return input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)


def pad(input, pad, mode: str = "constant", value=None) -> Tensor:
    """Adds (or, where negative, cuts) elements at the ends of the last dimensions, the last first."""
    pad = list(pad)
    if len(pad) % 2 or len(pad) // 2 > input.dim():
        raise RuntimeError(f"Padding length must be even and at most twice the number of dimensions, got {pad}")
    if mode == "constant":
        return _ops.pad(input, pad, 0.0 if value is None else value)
    if mode == "circular" and min(pad, default=0) < 0:  # what is cut off does not come round again
        input = _ops.pad(input, [min(n, 0) for n in pad], 0.0)
        pad = [max(n, 0) for n in pad]
    while pad and not (pad[-1] or pad[-2]):
        pad = pad[:-2]
    dims = range(input.dim() - len(pad) // 2, input.dim())
    places = [_pad_index(mode, input.shape[d], *pad[2 * (dims.stop - 1 - d):][:2], input.device) for d in dims]
    if len(dims) > 1 and math.prod(input.shape[:dims.start]) >= _MANY_PLANES:  # worth a table of a whole one
        return input[(..., *(p.reshape(-1, *[1] * (len(dims) - 1 - i)) for i, p in enumerate(places)))]
    for d, p in zip(dims, places, strict=True):
        input = input.index_select(d, p)
    return input


_MANY_PLANES = 32


def _pad_index(mode: str, size: int, before: int, after: int, device) -> Tensor:
    places = _pad_places(mode, size, before, after)
    return _C.from_bytes(places, _C.int64, [len(places) // 8], device)


@functools.lru_cache(maxsize=64)  # layers pad the same again and again
def _pad_places(mode: str, size: int, before: int, after: int) -> bytes:
    places = range(-before, size + after)
    if mode == "reflect":
        if max(before, after) >= size:
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: padding "
                f"({before}, {after}) at a dimension of size {size}"
            )
        index = [abs(p) if p < size else 2 * (size - 1) - p for p in places]
    elif mode == "replicate":
        index = [min(max(p, 0), size - 1) for p in places]
    elif mode == "circular":
        index = [p % size for p in places]
    else:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return array.array("q", index).tobytes()


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r^2, H, W) to (*, C, H r, W r)."""
    *lead, c, h, w = input.shape
    r = upscale_factor
    n = len(lead)
    folded = input.reshape(*lead, c // (r * r), r, r, h, w)
    return folded.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).clone().reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) to (*, C r^2, H, W)."""
    *lead, c, h, w = input.shape
    r = downscale_factor
    n = len(lead)
    folded = input.reshape(*lead, c, h // r, r, w // r, r)
    return folded.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).clone().reshape(*lead, c * r * r, h // r, w // r)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at each index. Waits where num_classes is not given."""
    if num_classes == -1:
        num_classes = int(tensor.max().item()) + 1
    return _ops.one_hot(tensor, num_classes)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 weight[k] input2 + bias[k], for every output feature k."""
    out, n1, n2 = weight.shape
    products = input1 @ weight.permute(1, 0, 2).reshape(n1, out * n2)
    result = (products.reshape(*input1.shape[:-1], out, n2) * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of `groups` groups, one of each in turn."""
    n, c = input.shape[:2]
    return input.reshape(n, groups, c // groups, -1).transpose(1, 2).reshape(input.shape)
