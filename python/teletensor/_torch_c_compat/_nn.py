"""torch._C._nn: functions of torch.nn.functional under the names and with the arguments of PyTorch's operators.

Reductions are numbers (0 for "none", which is the default, 1 for "mean", 2 for "sum") or names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .._grad_mode import before_write
from ..nn import functional as F
from ..nn import resampling
from ..nn.functional import (  # noqa: F401 - exported with the same arguments
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool2d,
    avg_pool3d,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    linear,
    mish,
    one_hot,
    pad,
    relu6,
    scaled_dot_product_attention,
    silu,
    softplus,
    softshrink,
)  # fmt: skip
from ..nn.functional import fold as col2im  # noqa: F401
from ..nn.functional import logsigmoid as log_sigmoid  # noqa: F401
from ..nn.utils.rnn import pad_sequence  # noqa: F401

_REDUCTIONS = ("none", "mean", "sum")


def _named_reduction(reduction: int | str) -> str:
    return reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]


def _loss(function: Callable, between: int) -> Callable:
    """Returns a loss with the arguments (input, target, `between` others, reduction, others by name)."""
    names = {1: ("weight",), 0: ()}[between]

    @functools.wraps(function)
    def loss(input: Tensor, target: Tensor, *args: Any, **options: Any) -> Tensor:
        options.update(zip((*names, "reduction", *_AFTER.get(function.__name__, ())), args, strict=False))
        options["reduction"] = _named_reduction(options.get("reduction", 0))
        return function(input, target, **options)

    return loss


# The arguments after the reduction.
_AFTER = {
    "nll_loss": ("ignore_index",), "cross_entropy": ("ignore_index", "label_smoothing"), "smooth_l1_loss": ("beta",),
    "huber_loss": ("delta",),
}  # fmt: skip

l1_loss, mse_loss, smooth_l1_loss, huber_loss = (_loss(f, 0) for f in (F.l1_loss, F.mse_loss, F.smooth_l1_loss, F.huber_loss))
soft_margin_loss, multilabel_margin_loss = _loss(F.soft_margin_loss, 0), _loss(F.multilabel_margin_loss, 0)
binary_cross_entropy, cross_entropy_loss = _loss(F.binary_cross_entropy, 1), _loss(F.cross_entropy, 1)
nll_loss = nll_loss2d = nll_loss_nd = _loss(F.nll_loss, 1)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: int | str = 0
) -> Tensor:
    """The multi-class margin loss."""
    return F.multi_margin_loss(input, target, int(p), margin, weight, reduction=_named_reduction(reduction))


def elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale input for positive elements, scale alpha (exp(input_scale input) - 1) otherwise."""
    if scale == 1 and input_scale == 1:
        return F.elu(input, alpha)
    return _C.torch.where(input > 0, input * scale, (input * input_scale).expm1() * (alpha * scale))


def _in_place(function: Callable) -> Callable:
    @functools.wraps(function)
    def apply(input: Tensor, *args: Any, **options: Any) -> Tensor:
        return input.copy_(function(before_write(input), *args, **options))

    return apply


elu_, gelu_, hardsigmoid_, hardswish_, hardtanh_ = (_in_place(f) for f in (elu, gelu, hardsigmoid, hardswish, hardtanh))
leaky_relu_, mish_, relu6_, silu_ = (_in_place(f) for f in (leaky_relu, mish, relu6, silu))


def im2col(input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """The windows of an image as columns."""
    return F.unfold(input, kernel_size, dilation, padding, stride)


# -- pooling


def max_pool2d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode=False):
    """The maxima of windows, and their indices."""
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def max_pool3d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode=False):
    """The maxima of windows, and their indices."""
    return F.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def adaptive_max_pool2d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The maxima of output_size windows, and their indices."""
    return F.adaptive_max_pool2d(input, output_size, return_indices=True)


def adaptive_max_pool3d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The maxima of output_size windows, and their indices."""
    return F.adaptive_max_pool3d(input, output_size, return_indices=True)


# -- padding


def _padding(mode: str, n: int) -> Callable:
    def apply(input: Tensor, padding: Any) -> Tensor:
        return F.pad(input, [padding] * 2 * n if isinstance(padding, int) else padding, mode)

    apply.__name__, apply.__doc__ = f"{mode}_pad{n}d", f"Pads the last {n} dimensions, mode {mode!r}."
    return apply


reflection_pad1d, reflection_pad2d, reflection_pad3d = (_padding("reflect", n) for n in (1, 2, 3))
replication_pad1d, replication_pad2d, replication_pad3d = (_padding("replicate", n) for n in (1, 2, 3))


# -- resampling


def _resampling(mode: str, n: int, antialias: bool = False) -> Callable:
    """Returns the function (input, output_size, [align_corners,] scales or scale_factors)."""
    aligned = mode not in ("nearest", "nearest-exact")

    def resample(
        input: Tensor, output_size: Sequence[int] | None = None, *args: Any, align_corners: bool = False, scale_factors: Any = None,
        scales: Any = None, scales_d: Any = None, scales_h: Any = None, scales_w: Any = None,
    ) -> Tensor:  # fmt: skip
        args = list(args)
        if aligned and args:
            align_corners = args.pop(0)
        named = {1: (scales,), 2: (scales_h, scales_w), 3: (scales_d, scales_h, scales_w)}[n]
        factors = args[0] if args and isinstance(args[0], (list, tuple)) else args or scale_factors or named
        factors = [] if not factors or None in factors else [float(f) for f in factors]
        sizes = [math.floor(size * f) for size, f in zip(input.shape[2:], factors)] if output_size is None else list(output_size)
        if len(sizes) != n or input.dim() != n + 2:
            raise RuntimeError(
                f"[upsample_{mode}{n}d] expected an input of {n + 2} dimensions and {n} sizes, got {input.dim()} and {len(sizes)}"
            )
        return resampling.resample(input, sizes, mode, align_corners, factors, antialias)

    return resample


upsample_nearest1d, upsample_nearest2d, upsample_nearest3d = (_resampling("nearest", n) for n in (1, 2, 3))
_upsample_nearest_exact1d, _upsample_nearest_exact2d, _upsample_nearest_exact3d = (_resampling("nearest-exact", n) for n in (1, 2, 3))
upsample_linear1d, upsample_bilinear2d, upsample_trilinear3d = (
    _resampling(mode, n) for mode, n in (("linear", 1), ("bilinear", 2), ("trilinear", 3))
)
upsample_bicubic2d = _resampling("bicubic", 2)
_upsample_bilinear2d_aa, _upsample_bicubic2d_aa, _upsample_lanczos2d_aa = (
    _resampling(mode, 2, True) for mode in ("bilinear", "bicubic", "lanczos")
)


# -- other


def flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors in one vector."""
    return _C.torch.cat([t.reshape(-1) for t in tensors])


def unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Divides a vector into tensors of the given tensors' shapes."""
    return tuple(part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors, strict=True))


def _parse_to(*args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False, memory_format: Any = None):
    """The arguments of Tensor.to and Module.to as (device, dtype, non_blocking, memory_format).

    Raises:
        RuntimeError: `copy` is True.
    """
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    else:
        if rest and (rest[0] is None or (isinstance(rest[0], (str, int, _C.device)) and not isinstance(rest[0], bool))):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], _C.dtype)):
            dtype = rest.pop(0)
    non_blocking, copy = (rest + [non_blocking, copy][len(rest) :])[:2]
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    return None if device is None else _C.device(device), dtype, non_blocking, memory_format
