"""torch's versions of functions of torch.nn.functional, with the operators' parameters instead of the modules'."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._generator import Generator
from .._grad_mode import before_write
from .._options import check_flags
from . import functional as F  # noqa: N812 - PyTorch's name
from ._aten_losses import none_by_default


def adaptive_max_pool1d(input: Tensor, output_size) -> tuple[Tensor, Tensor]:
    """The maxima and their indices."""
    return F.adaptive_max_pool1d(input, output_size, True)


def _dropout(name: str):
    function = getattr(F, name)

    def checked(p: float) -> float:
        if p < 0 or p > 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
        return p

    def drop(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, checked(p), train)

    def drop_in_place(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, checked(p), train, True)

    drop.__name__, drop.__doc__ = name, f"functional.{name}, where `train` is required."
    drop_in_place.__name__, drop_in_place.__doc__ = f"{name}_", f"{name}, in place."
    return drop, drop_in_place


(dropout, dropout_), (alpha_dropout, alpha_dropout_), (feature_dropout, feature_dropout_) = (
    _dropout("dropout"), _dropout("alpha_dropout"), _dropout("feature_dropout"),
)  # fmt: skip
feature_alpha_dropout, feature_alpha_dropout_ = _dropout("feature_alpha_dropout")


def batch_norm(
    input: Tensor, weight, bias, running_mean, running_var, training: bool, momentum: float, eps: float, cudnn_enabled: bool = False
) -> Tensor:
    """functional.batch_norm with another order of arguments."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight, bias, running_mean, running_var, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    """functional.instance_norm with another order of arguments."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of weight at the indices. Row padding_idx gets no gradient."""
    return F.embedding(indices, weight, None if padding_idx < 0 else padding_idx, None, 2.0, scale_grad_by_freq, sparse)


def group_norm(input: Tensor, num_groups: int, weight=None, bias=None, eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:
    """Normalises groups of channels. ``cudnn_enabled`` selects an implementation in PyTorch, not the result."""
    check_flags("group_norm", cudnn_enabled=cudnn_enabled)
    return F.group_norm(input, num_groups, weight, bias, eps)


def layer_norm(input: Tensor, normalized_shape, weight=None, bias=None, eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    """Normalises over the last dimensions. ``cudnn_enable`` selects an implementation in PyTorch, not the result."""
    check_flags("layer_norm", cudnn_enable=cudnn_enable)
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def max_pool1d(input: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode: bool = False) -> Tensor:
    """The maximum of each window."""
    return F.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode)


def max_pool2d(input: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode: bool = False) -> Tensor:
    """The maximum of each window."""
    return F.max_pool2d(input, kernel_size, stride or None, padding, dilation, ceil_mode)


def max_pool3d(input: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode: bool = False) -> Tensor:
    """The maximum of each window."""
    return F.max_pool3d(input, kernel_size, stride or None, padding, dilation, ceil_mode)


def rrelu(
    input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, generator: Generator | None = None
) -> Tensor:
    """Leaky relu with a random slope per element in training, otherwise with the mean of lower and upper."""
    if generator is None:
        return F.rrelu(input, lower, upper, training)
    with generator:
        return F.rrelu(input, lower, upper, training)


def rrelu_(
    input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, generator: Generator | None = None
) -> Tensor:
    """rrelu, in place."""
    return _C.ops.assign(input, rrelu(before_write(input), lower, upper, training, generator), out=input)


_REDUCTIONS = ("none", "mean", "sum")


@none_by_default
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    reduction: int = 1,
) -> Tensor:  # fmt: skip
    """functional.triplet_margin_loss; ``reduction`` is 0 for none, 1 for mean and 2 for sum."""
    if isinstance(reduction, bool) or not isinstance(reduction, int):
        raise TypeError(f"triplet_margin_loss(): argument 'reduction' must be int, not {type(reduction).__name__}")
    if not 0 <= reduction < len(_REDUCTIONS):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_REDUCTIONS[reduction])
