"""torch.nn.functional: PyTorch's functions of neural networks.

Most functions are generated operators. A function is written here only if PyTorch's function has more arguments than
the operator (``inplace``, ``training``, padding by name).
"""

from __future__ import annotations

import contextlib
import math
import warnings

from .. import _C, _composites
from .._C import Tensor
from .._grad_mode import before_write
from .._generator import Generator
from .._composites import one_operator
from .._integers import is_int, repeated
from .._layouts import require_not_nested
from .._ops.join import pdist  # noqa: F401
from .._ops.padding import pad  # noqa: F401
from .._ops.out_variant import exact_out_variant
from .._options import check_flags, check_kind
from .._overridable import PROTOCOL as _PROTOCOL
from .._overridable import overridable as _overridable
from .._overridable import wrap_functions as _wrap_functions
from . import _reduction as _Reduction  # noqa: F401, N812 - PyTorch's name
from . import _sparse_gradients
from .dot_product_attention import multi_head_attention_forward, scaled_dot_product_attention  # noqa: F401
from .embedding_bag import embedding_bag, divide_by_frequency, renorm_rows
from .resampling import fold, interpolate, unfold, upsample, upsample_bilinear, upsample_nearest  # noqa: F401

globals().update({name: fn for name, fn in vars(_C.functional).items() if not name.startswith("_")})
_ops = _C.ops
from .losses import *  # noqa: E402, F403 - the losses replace the operators
from .sequence_losses import (  # noqa: E402, F401
    ctc_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss, triplet_margin_with_distance_loss,
)  # fmt: skip
from .pooling import (  # noqa: E402, F401 - max_pool3d replaces the operator
    adaptive_max_pool1d, adaptive_max_pool3d, fractional_max_pool2d, fractional_max_pool3d, local_response_norm,
    lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d, max_pool2d_with_indices, max_pool3d, max_unpool1d,
    max_unpool2d, max_unpool3d, one_size,
)  # fmt: skip



# -- activations

_in = _C.functional


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0)."""
    return _in.relu(input, out=input) if inplace else _in.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """input clamped to [0, 6]."""
    return _in.relu6(input, out=input) if inplace else _in.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input for positive elements, negative_slope input otherwise."""
    return _in.leaky_relu(input, negative_slope, out=input if inplace else None)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input for positive elements, alpha (exp(input) - 1) otherwise."""
    return _in.elu(input, alpha, out=input if inplace else None)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu, scaled to preserve means and variances (Klambauer et al. 2017)."""
    return _in.selu(input, out=input if inplace else None)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(input, 0) + min(alpha (exp(input / alpha) - 1), 0)."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _in.celu(input, alpha, out=input if inplace else None)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input sigmoid(input)."""
    return _in.silu(input, out=input) if inplace else _in.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input tanh(softplus(input))."""
    return _in.mish(input, out=input if inplace else None)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(input + 3) / 6 clamped to [0, 1]."""
    return _in.hardsigmoid(input, out=input if inplace else None)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input hardsigmoid(input)."""
    return _in.hardswish(input, out=input if inplace else None)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where it exceeds the threshold, value elsewhere."""
    return _in.threshold(input, threshold, value, out=input if inplace else None)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _in.hardtanh(input, min_val, max_val, out=input if inplace else None)


@exact_out_variant
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Moves elements towards 0 by lambd; elements within lambd of 0 become 0."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _C.functional.softshrink(input, lambd)


def _in_place(name: str, parameters: str):
    function = globals()[name]

    def activation(input: Tensor, *args, **kwargs) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)

    activation.__overloads__ = (parameters,)
    activation.__name__, activation.__doc__ = f"{name}_", f"{name}, in place."
    return activation


for _name, _parameters in {
    "relu": "input", "leaky_relu": "input, negative_slope=0.01", "elu": "input, alpha=1.0", "selu": "input", "celu": "input, alpha=1.0",
    "hardtanh": "input, min_val=-1.0, max_val=1.0", "threshold": "input, threshold, value",
}.items():  # fmt: skip
    globals()[f"{_name}_"] = _in_place(_name, _parameters)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return _C.torch.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input))."""
    return _C.torch.sigmoid(input)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """Leaky relu with a random slope per element in training, otherwise with the mean of lower and upper."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    x = before_write(input) if inplace else input
    if training:
        slope = _C.torch.rand_like(x) * (upper - lower) + lower
        result = _C.torch.where(x <= 0, x * slope, x)
    else:
        result = _ops.leaky_relu(x, (lower + upper) / 2)
    return input.copy_(result) if inplace else result


def rrelu_(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Generator | None = None
) -> Tensor:
    """rrelu, in place."""
    with generator or contextlib.nullcontext():
        return _ops.assign(input, rrelu(before_write(input), lower, upper, training), out=input)


def _softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """softmax of -input."""
    dim = _softmax_dim("softmin", input.dim(), _stacklevel) if dim is None else dim
    return _ops.softmax(-input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """exp(input) / sum(exp(input), dim)."""
    dim = _softmax_dim("softmax", input.dim(), _stacklevel) if dim is None else dim
    return _ops.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """log(softmax(input, dim)), computed stably."""
    dim = _softmax_dim("log_softmax", input.dim(), _stacklevel) if dim is None else dim
    return _ops.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Samples from the Gumbel-Softmax distribution (Jang et al. 2016; Maddison et al. 2016)."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    uniform = _C.torch.rand_like(logits).clamp(1e-20, 1.0)
    soft = softmax((logits - (-uniform.log()).clamp_min(1e-20).log()) / tau, dim)
    if not hard:
        return soft
    one_hot_sample = _C.torch.zeros_like(logits).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return one_hot_sample - soft.detach() + soft


# -- dropout


def _checked_probability(p: float) -> float:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes elements with probability p and scales the rest by 1 / (1 - p)."""
    if _checked_probability(p) == 0.0 or not training:
        return input if _composites.recorder is None else _unchanged_by_dropout(input, p, training)
    result = _ops.dropout(input, p, True)
    return input.copy_(result) if inplace else result


@one_operator("dropout")
def _unchanged_by_dropout(input: Tensor, p: float, training: bool) -> Tensor:
    return input


def _keep_mask(input: Tensor, sizes, p: float) -> Tensor:
    """A random mask: 1 with probability 1 - p, otherwise 0. Draws one random number per element, also if complex."""
    drawn = _C.torch.rand(list(sizes), dtype=input.dtype.to_real(), device=input.device)
    return (drawn >= p).to(input.dtype)


def _channels(input: Tensor) -> list[int]:
    """The shape of a mask of whole channels, dimension 1."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return [*input.shape[:2], *[1] * (input.dim() - 2)]


def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels (dimension 1) with probability p, and scales the rest by 1 / (1 - p)."""
    if _checked_probability(p) == 0.0 or not training:
        return input
    result = input * _keep_mask(input, _channels(input), p) * (1 / (1 - p)) if p < 1 else input * 0
    return input.copy_(result) if inplace else result


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """feature_dropout of (N, C, L) or (C, L)."""
    _checked_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    return _unbatched_feature_dropout(input, p, training, inplace, input.dim() == 2)


dropout2d = feature_dropout  # as in PyTorch, dimension 1 of a 3D input counts as the channels


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """feature_dropout of (N, C, D, H, W); input of another number of dimensions is a sample without a batch."""
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated", UserWarning, stacklevel=2)
    return _unbatched_feature_dropout(input, p, training, inplace, input.dim() != 5)


def _unbatched_feature_dropout(input: Tensor, p: float, training: bool, inplace: bool, unbatched: bool) -> Tensor:
    if not unbatched or _checked_probability(p) == 0.0 or not training:
        return feature_dropout(input, p, training, inplace)
    result = feature_dropout(input.unsqueeze(0), p, training).squeeze(0)
    return input.copy_(result) if inplace else result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of selu's outputs (Klambauer et al. 2017)."""
    return _alpha_dropout(input, p, training, inplace, lambda input: input.shape)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels."""
    return _alpha_dropout(input, p, training, inplace, _channels)


def _alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool, mask_shape) -> Tensor:
    if _checked_probability(p) == 0.0 or not training:
        return input
    if p == 1:
        result = input * 0
    else:
        saturated = -1.7580993408473766
        a = ((1 - p) * (1 + p * saturated**2)) ** -0.5
        kept = _keep_mask(input, mask_shape(input), p)
        result = (input * kept + saturated * (1 - kept)) * a - a * p * saturated
    return input.copy_(result) if inplace else result


# -- convolution


def _convolution(name: str, n: int):
    operator = getattr(_ops, name)

    def convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Tensor:
        if isinstance(padding, str):
            check_kind(name, "weight", weight, Tensor)
            if padding == "valid":
                padding = 0
            elif padding == "same":
                if any(s != 1 for s in repeated(stride, n)):
                    raise RuntimeError("padding='same' is not supported for strided convolutions")
                total = [d * (k - 1) for d, k in zip(repeated(dilation, n), weight.shape[2:])]
                padding = [t // 2 for t in total]
                if any(t % 2 for t in total):
                    input = pad(input, [v for t in reversed(total) for v in (0, t % 2)])
            else:
                raise RuntimeError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
        return operator(
            input, weight, bias, repeated(stride, n), repeated(padding, n), repeated(dilation, n), groups
        )

    convolution.__name__, convolution.__doc__ = name, operator.__doc__
    return convolution


conv1d, conv2d, conv3d = _convolution("conv1d", 1), _convolution("conv2d", 2), _convolution("conv3d", 3)


# -- pooling


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) -> Tensor:
    """The mean of each window."""
    single = lambda v: v if is_int(v) else v[0]  # noqa: E731
    stride = kernel_size if stride is None else stride
    pooled = _ops.avg_pool2d(
        input.unsqueeze(-2), (1, single(kernel_size)), (1, single(stride)), (0, single(padding)), ceil_mode,
        count_include_pad,
    )  # fmt: skip
    return pooled.squeeze(-2)


def adaptive_avg_pool1d(input, output_size: int) -> Tensor:
    """Average pooling to output_size."""
    return _ops.adaptive_avg_pool2d(input.unsqueeze(-2), (1, one_size("adaptive_avg_pool1d", output_size))).squeeze(-2)


def _adaptive_size(input: Tensor, output_size, n: int = 2) -> list[int]:
    if input.dim() <= n:
        raise ValueError(f"Input dimension should be at least {n + 1}, got {input.dim()}")
    require_not_nested("adaptive pooling", input)
    sizes = repeated(output_size, n) if output_size is not None else (None,) * n
    return [input.shape[i - n] if s is None else s for i, s in enumerate(sizes)]


def adaptive_avg_pool2d(input, output_size) -> Tensor:
    """Average pooling to output_size, where None means the size of the input."""
    return _ops.adaptive_avg_pool2d(input, _adaptive_size(input, output_size))


def adaptive_avg_pool3d(input, output_size) -> Tensor:
    """Average pooling to output_size, where None means the size of the input."""
    return _ops.adaptive_avg_pool3d(input, _adaptive_size(input, output_size, 3))


def adaptive_max_pool2d(input, output_size, return_indices: bool = False):
    """Max pooling to output_size, where None means the size of the input."""
    size = _adaptive_size(input, output_size)
    if return_indices:
        return tuple(_ops.adaptive_max_pool2d_with_indices(input, size))
    return _ops.adaptive_max_pool2d(input, size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d and the indices of the maxima, whatever ``return_indices`` is."""
    check_flags("adaptive_max_pool2d_with_indices", return_indices=return_indices)
    return adaptive_max_pool2d(input, output_size, True)


# -- norms, embeddings, shapes


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalises channels by the statistics of the batch (in training) or the running statistics."""
    if training:
        require_not_nested("batch_norm", input)
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if training and input.numel() and input.dim() > 1 and input.numel() // max(1, input.shape[1]) <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return _ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@one_operator("instance_norm")
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
) -> Tensor:
    """Normalises each channel of each sample separately."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return _ops.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    require_not_nested("instance_norm", input)
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    result = _ops.group_norm(input, input.shape[1], weight, bias, eps)
    if running_mean is not None:
        from .._grad_mode import no_grad

        with no_grad():
            rest = [0, *range(2, input.dim())]
            per_sample = input.var(rest[1:]).mean(0)
            running_mean.lerp_(input.mean(rest).to(running_mean.dtype), momentum)
            running_var.lerp_(per_sample.to(running_var.dtype), momentum)
    return result


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5) -> Tensor:
    """Normalises over the last dimensions."""
    return _ops.layer_norm(input, repeated(normalized_shape, 1), weight, bias, eps)


def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
) -> Tensor:
    """Selects rows of weight by index. With ``sparse``, the gradient of a leaf weight is a sparse_coo tensor."""
    check_kind("embedding", "weight", weight, Tensor)
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
        renorm_rows(weight, input, max_norm, norm_type)
    if sparse and _sparse_gradients.has_sparse_gradient(weight):
        return _sparse_gradients.rows(weight, input, padding_idx, scale_grad_by_freq)
    rows = _ops.embedding(weight, input, padding_idx)
    return divide_by_frequency(rows, input, weight.shape[0]) if scale_grad_by_freq else rows


def normalize(input, p=2.0, dim=1, eps=1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(norm, eps) along dim; p and dim as in Tensor.norm()."""
    if isinstance(p, str) or dim is None:
        return _ops.div(input, input.norm(p, dim, True).clamp_min(eps), out=out)
    return _ops.normalize(input, p, dim, eps, out=out)


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A one-hot vector for each index. Waits for the engine if num_classes is not given."""
    if num_classes == -1:
        num_classes = int(input.max().item()) + 1
    return _ops.one_hot(input, num_classes)


_wrap_functions(globals())


__all__ = [  # noqa: F405, F822 - PyTorch's names; some are imported at their first use
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES", "ScalingType", "SwizzleType", "Tensor", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid",
    "alpha_dropout", "assert_int_or_pair", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "boolean_dispatch", "celu", "celu_", "channel_shuffle",
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "gaussian_nll_loss",
    "gelu", "glu", "grid_sample", "group_norm", "grouped_mm", "gumbel_softmax", "handle_torch_function", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss",
    "layer_norm", "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_",
    "reproducibility_notes", "rms_norm", "rrelu", "rrelu_", "scaled_addmm", "scaled_addmm_", "scaled_dot_product_attention",
    "scaled_grouped_mm", "scaled_mm", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "sparse_support_notes", "tanh", "tanhshrink", "tf32_notes", "threshold",
    "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip


def __getattr__(name: str):
    """Names that are rarely used."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.nn.functional' has no attribute {name!r}")
    if name in _PROTOCOL:
        return _PROTOCOL[name]
    from . import _functional_names

    if hasattr(_functional_names, name):
        value = globals()[name] = _overridable(__name__, name, getattr(_functional_names, name))
        return value
    raise AttributeError(f"module 'teletensor.nn.functional' has no attribute {name!r}: not implemented yet (docs/names.md)")


def __dir__() -> list[str]:
    from . import _functional_names

    return sorted({*globals(), *vars(_functional_names)})
