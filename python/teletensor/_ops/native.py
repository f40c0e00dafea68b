"""ATen functions that torch exports: norms with their statistics, dropout with its mask, grid samplers."""

from __future__ import annotations

import builtins
import itertools
import math
from typing import NamedTuple

from .. import _C
from .._C import Tensor
from .._integers import is_int, repeated
from .._named_results import printed_as
from .._options import check_kind
from .out_variant import exact_out_variant, out_variant

__all__ = [
    "conv_tbc", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "histogramdd",
    "native_batch_norm", "native_dropout", "native_dropout_backward", "native_group_norm", "native_layer_norm",
    "nonzero_static", "segment_reduce",
]  # fmt: skip

_torch, _ops, _F = _C.torch, _C.ops, _C.functional


def _statistics(input: Tensor, dims: list[int], eps: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Returns (mean, 1 / standard deviation) over dims, in float32 for 16-bit dtypes."""
    wide = input.to(_C.float32) if input.dtype in (_C.float16, _C.bfloat16) else input
    variance, mean = _ops.var_mean(wide, dims, correction=0, keepdim=keepdim)
    return mean, (variance + eps).rsqrt()


def native_layer_norm(input: Tensor, normalized_shape, weight, bias, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (layer_norm, mean, 1 / standard deviation); the statistics have no gradient."""
    shape = repeated(normalized_shape, 1)
    mean, scale = _statistics(input, list(range(input.dim() - len(shape), input.dim())), eps, True)
    return _ops.layer_norm(input, shape, weight, bias, eps), mean.to(input.dtype).detach(), scale.to(input.dtype).detach()


def native_group_norm(input: Tensor, weight, bias, N: int, C: int, HxW: int, group: int, eps: float):  # noqa: N803
    """Returns (group_norm, mean, 1 / standard deviation) of input, of size (N, C, ...). Statistics are per group."""
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != (C,):
            raise RuntimeError(f"[native_group_norm] expected {name} of shape [{C}], got {list(given.shape)}")
    mean, scale = _statistics(input.reshape(N, group, C // group * HxW), [2], eps, False)
    return _ops.group_norm(input, group, weight, bias, eps), mean.to(input.dtype), scale.to(input.dtype)


@out_variant
def native_batch_norm(input: Tensor, weight, bias, running_mean, running_var, training: bool, momentum: float, eps: float):
    """Returns (batch_norm, mean, 1 / standard deviation) of the batch; without training the statistics are empty. They have no
    gradient."""
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training and running_mean is None:
        raise ValueError("running_mean must be defined in evaluation mode")
    result = _ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return result, input.new_empty(0), input.new_empty(0)
    mean, scale = _statistics(input, [0, *range(2, input.dim())], eps, False)
    return result, mean.to(input.dtype).detach(), scale.to(input.dtype).detach()


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Returns (dropout, mask); the mask is True where an element was kept."""
    if train is False:
        return input.clone(), _torch.ones(input.shape, dtype=_C.bool, device=input.device)
    kept = _torch.rand(input.shape, device=input.device) >= p
    return native_dropout_backward(input, kept, 1 / (1 - p) if p < 1 else 0.0), kept


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of native_dropout."""
    return grad_output * mask.to(grad_output.dtype) * scale


_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """functional.grid_sample with modes given by number."""
    for name, mode, known in (("interpolation_mode", interpolation_mode, _MODES), ("padding_mode", padding_mode, _PADDINGS)):
        if not 0 <= mode < len(known):
            raise RuntimeError(f"[grid_sampler] expected {name} between 0 and {len(known) - 1}, got {mode}")
    return _ops.grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution over time. `input`: (time, batch, channels). `weight`: (width, input channels, output channels)."""
    for name, value in (("input", input), ("weight", weight), ("bias", bias)):
        check_kind("conv_tbc", name, value, Tensor)
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: expected a 3-D input (time, batch, channels), a 3-D weight (width, input channels, output channels) and "
            f"a 1-D bias, got {input.dim()}-D, {weight.dim()}-D and {bias.dim()}-D"
        )
    return _ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)


@exact_out_variant
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The indices of the first `size` nonzero elements, followed by rows of fill_value. Does not wait."""
    if isinstance(fill_value, bool) or not is_int(fill_value):
        raise TypeError(f"nonzero_static(): argument 'fill_value' must be int, not {type(fill_value).__name__}")
    flat = (input.reshape(-1) != 0).to(_C.int64)
    number = flat.cumsum(0) - 1  # rank of each nonzero element
    count = flat.sum()
    indices = _torch.zeros(size + 1, dtype=_C.int64, device=input.device)
    slots = _torch.where((flat == 1) & (number < size), number, size)
    indices = indices.scatter(0, slots, _torch.arange(flat.numel(), device=input.device))[:size]
    columns = []
    for d in range(input.dim()):
        inner = math.prod(input.shape[d + 1 :])
        columns.append(indices.div(max(inner, 1), rounding_mode="floor") % max(input.shape[d], 1))
    if not columns:
        return _torch.empty(size, 0, dtype=_C.int64, device=input.device)
    missing = _torch.arange(size, device=input.device) >= count
    return _torch.stack(columns, 1).masked_fill(missing.unsqueeze(1), fill_value)


@printed_as("histogramdd")
class HistogramDD(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def histogramdd(input: Tensor, bins, range=None, weight: Tensor | None = None, density: bool = False):  # noqa: A002
    """Returns (histogram, edges): the count or total weight of each cell of a grid, and the edges along each dimension.

    The last dimension of input contains the coordinates of a point.
    """
    points = input.detach().reshape(-1, input.shape[-1])
    count = points.shape[1]
    bins = repeated(bins, count)
    if len(bins) != count:
        raise RuntimeError(f"histogramdd(): expected {count} sequences of bin edges or numbers of bins, got {len(bins)}")
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} elements, but got {len(range)}"
        )
    edges = [b.to(points.dtype) if isinstance(b, Tensor) else _edges(points[:, d], b, range, d) for d, b in enumerate(bins)]
    cells = [e.numel() - 1 for e in edges]
    index = _torch.zeros(points.shape[0], dtype=_C.int64, device=input.device)
    inside = _torch.ones(points.shape[0], dtype=_C.bool, device=input.device)
    for d, e in enumerate(edges):
        x = points[:, d].contiguous()
        inside = inside & (x >= e[0]) & (x <= e[cells[d]])
        index = index * cells[d] + (_ops.searchsorted(e, x, right=True) - 1).clamp(0, cells[d] - 1)
    weights = _torch.ones_like(points[:, 0]) if weight is None else weight.detach().reshape(-1).to(points.dtype)
    weights = _torch.where(inside, weights, 0.0)
    zeros = _torch.zeros(math.prod(cells), dtype=points.dtype, device=input.device)
    hist = zeros.scatter_add(0, index, weights).reshape(cells)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            hist = hist / e.diff().reshape([-1 if i == d else 1 for i in builtins.range(count)])
    return HistogramDD(hist, tuple(edges))


def _edges(values: Tensor, count: int, limits, d: int) -> Tensor:
    if limits is not None:
        low, high = limits[2 * d], limits[2 * d + 1]
    else:
        low, high = (float(values.min()), float(values.max())) if values.numel() else (0.0, 1.0)
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    return _torch.linspace(low, high, count + 1, dtype=values.dtype, device=values.device)


_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("mean", math.nan),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "prod": ("prod", 1.0),
}


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices=None, offsets: Tensor | None = None, axis: int = 0,
    unsafe: bool = False, initial=None,
) -> Tensor:  # fmt: skip
    """The sum, mean, max, min or prod of each segment along axis. Waits for the segments' lengths."""
    reduction = next((name for name, (function, _) in _REDUCTIONS.items() if reduce in (name, function)), None)
    if reduction is None:
        raise RuntimeError(f"[segment_reduce] reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    segments = lengths if offsets is None else offsets
    if segments is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if segments.dtype not in (_C.int32, _C.int64):
        raise NotImplementedError(f"[segment_reduce] expected lengths or offsets of int32 or int64, got {segments.dtype}")
    if not -data.dim() <= axis < max(1, data.dim()):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-data.dim()}, {data.dim() - 1}], but got {axis})")
    axis = axis % data.dim()
    if segments.dim() != axis + 1:
        raise RuntimeError(f"[segment_reduce] expected lengths of {axis + 1} dimensions for axis {axis}, got {segments.dim()}")
    bounds = segments.tolist() if offsets is not None else _bounds(lengths, None if unsafe else data.shape[axis])
    return _reduce_segments(data, bounds, axis, reduction, initial)


def _bounds(lengths: Tensor, total: int | None) -> list:
    """The bounds of segments, from 0, by the lengths in the last dimension, whose sum has to be `total`."""
    if (lengths < 0).any():
        raise RuntimeError("segment_reduce(): lengths contains negative value!")
    sums = lengths.cumsum(-1)
    if total is not None and (lengths.sum(-1) != total).any():
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) when unsafe is false.")
    return _torch.cat([sums.new_zeros([*sums.shape[:-1], 1]), sums], -1).tolist()


def _reduce_segments(data: Tensor, bounds: list, axis: int, reduction: str, initial: float | None) -> Tensor:
    """Reduces the segments between the bounds along axis, which differ between indices of the dimensions before it."""
    if axis:
        rows = [_reduce_segments(part, row, axis - 1, reduction, initial) for part, row in zip(data.unbind(0), bounds)]
        return _torch.stack(rows)
    function, empty = _REDUCTIONS[reduction]
    results = []
    for start, end in itertools.pairwise(bounds):
        segment = data.narrow(0, start, end - start)
        if end == start:
            results.append(segment.sum(0) + (empty if initial is None else initial))
            continue
        value = getattr(segment, function)(0)
        results.append(value if initial is None else _with_initial(value, reduction, initial, end - start))
    return _torch.stack(results) if results else data.new_empty([0, *data.shape[1:]])


def _with_initial(value: Tensor, reduction: str, initial: float, count: int) -> Tensor:
    """Combines a reduction with its initial value, to which no part of the gradient goes if both are equal."""
    if reduction in ("max", "min"):
        less = value < initial if reduction == "max" else value > initial
        return value.masked_fill(~value.isnan() if math.isnan(initial) else less, initial)
    return value * initial if reduction == "prod" else value + (initial if reduction == "sum" else initial / count)


Tensor.nonzero_static = nonzero_static
