"""Pooling of functional beside its operators: with indices, undone, by power means, adaptive in one or three dimensions."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor

_ops = _C.ops


def _many(value, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


def _unpool(n: int):
    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
    ) -> Tensor:
        kernel, padding = _many(kernel_size, n), _many(padding, n)
        stride = kernel if stride is None else _many(stride, n)
        usual = [(s - 1) * st - 2 * p + k for s, st, p, k in zip(input.shape[-n:], stride, padding, kernel)]
        size = usual if output_size is None else list(output_size)[-n:]
        for wanted, made, st in zip(size, usual, stride):
            if not made - st < wanted < made + st:
                raise ValueError(f"invalid output_size {size} (expected about {usual}, less than a stride away)")
        lead = input.shape[:-n]
        zeros = _C.torch.zeros(*lead, math.prod(size), dtype=input.dtype, device=input.device)
        return zeros.scatter(-1, indices.flatten(-n), input.flatten(-n)).reshape(*lead, *size)

    max_unpool.__name__ = f"max_unpool{n}d"
    max_unpool.__doc__ = f"max_pool{n}d's largest values back at their places, zeros elsewhere."
    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest value of each window; with indices into the flattened volume where asked for."""
    stride = kernel_size if stride is None else stride
    if not return_indices:
        return _ops.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
    kernel, stride, padding, dilation = (_many(v, 3) for v in (kernel_size, stride, padding, dilation))
    batch = input if input.dim() == 5 else input.unsqueeze(0)
    n, c, depth, height, width = batch.shape
    # Planes first, then the lines of what they kept.
    planes, inside = _ops.max_pool2d_with_indices(
        batch.flatten(0, 2).unsqueeze(1), kernel[1:], stride[1:], padding[1:], dilation[1:], ceil_mode
    )
    h, w = planes.shape[-2:]
    lines, along = _ops.max_pool2d_with_indices(
        planes.reshape(n, c, depth, h * w), (kernel[0], 1), (stride[0], 1), (padding[0], 0), (dilation[0], 1), ceil_mode
    )
    inside = inside.reshape(n, c, depth * h * w).gather(2, along.flatten(2))
    places = along.flatten(2).div(h * w, rounding_mode="floor") * (height * width) + inside
    shape = (n, c, lines.shape[2], h, w)
    result, places = lines.reshape(shape), places.reshape(shape)
    return (result, places) if input.dim() == 5 else (result.squeeze(0), places.squeeze(0))


def adaptive_max_pool1d(input, output_size, return_indices: bool = False):
    """The largest values of windows such that output_size remain."""
    size = output_size if isinstance(output_size, int) else output_size[0]
    values, places = _ops.adaptive_max_pool2d_with_indices(input.unsqueeze(-2), (1, size))
    return (values.squeeze(-2), places.squeeze(-2)) if return_indices else values.squeeze(-2)


def adaptive_max_pool3d(input, output_size, return_indices: bool = False):
    """The largest values of windows such that output_size remain; None keeps a size."""
    if return_indices:
        raise NotImplementedError("[adaptive_max_pool3d] return_indices is not supported")
    size = [input.shape[i - 3] if s is None else s for i, s in enumerate((output_size,) * 3 if isinstance(output_size, int) else output_size)]
    lead, (depth, height, width) = input.shape[:-3], input.shape[-3:]
    planes = _ops.adaptive_max_pool2d(input.reshape(-1, depth, height, width), size[1:])
    lines = _ops.adaptive_max_pool2d(planes.reshape(-1, 1, depth, size[1] * size[2]), (size[0], size[1] * size[2]))
    return lines.reshape(*lead, *size)


def _power_pool(n: int):
    def lp_pool(input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> Tensor:
        kernel = _many(kernel_size, n)
        stride = kernel if stride is None else _many(stride, n)
        if n == 1:
            powers = _ops.avg_pool2d(
                (input**norm_type).unsqueeze(-2), (1, *kernel), (1, *stride), (0, 0), ceil_mode
            ).squeeze(-2)
        else:
            powers = getattr(_ops, f"avg_pool{n}d")(input**norm_type, kernel, stride, (0,) * n, ceil_mode)
        return (powers.sign() * powers.abs().relu() * math.prod(kernel)) ** (1.0 / norm_type)

    lp_pool.__name__, lp_pool.__doc__ = f"lp_pool{n}d", "The power means of windows, times their sizes."
    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = _power_pool(1), _power_pool(2), _power_pool(3)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input over a power of its neighbour channels' squares (Krizhevsky et al. 2012)."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    squares = _ops.pad((input * input).flatten(2).unsqueeze(1), [0, 0, size // 2, (size - 1) // 2])
    means = _ops.avg_pool2d(squares, (size, 1), (1, 1)).squeeze(1).reshape(input.shape)
    return input / (means * alpha + k) ** beta
