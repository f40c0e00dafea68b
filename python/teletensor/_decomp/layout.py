"""Decompositions of operators that create tensors, and of those that move elements.

Each function has the arguments of its operator in `torch.ops.aten`, and computes in the arguments' dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import teletensor as torch

from .._C import Tensor
from .._options import check_layout
from ..ops import aten


def scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


def dims_of(x: Tensor, dim: Any) -> list[int]:
    dim = range(x.dim()) if dim is None or dim == [] or dim == () else [dim] if isinstance(dim, int) else dim
    return [d % max(x.dim(), 1) for d in dim] if x.dim() else []


def _places(x: Tensor, dim: int) -> Tensor:
    """The index of each element in a dimension."""
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    return torch.arange(x.shape[dim], device=x.device).view(shape)


def _clone(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)


def _copied(view: Callable) -> Callable:
    """The operator that copies a view, or a list of views."""

    def copy(*args: Any, **kwargs: Any) -> Any:
        found = view(*args, **kwargs)
        return _clone(found) if isinstance(found, Tensor) else [_clone(t) for t in found]

    return copy


# Creation


def _options(dtype=None, layout=None, device=None, pin_memory=None) -> dict[str, Any]:
    """The options of a new tensor, as arguments of torch's functions."""
    check_layout("torch.ops.aten", layout)
    return {"dtype": dtype or torch.get_default_dtype(), "device": device, "pin_memory": bool(pin_memory)}


def _filled(value: Any) -> Callable:
    return lambda size, **options: torch.full(size, value, **_options(**options))


def _filled_like(value: Any) -> Callable:
    return lambda self, **options: torch.full_like(self, value, **{k: v for k, v in options.items() if v is not None})


def _new_full(self: Tensor, size: Sequence[int], fill_value: Any, *, dtype=None, device=None, **options: Any) -> Tensor:
    return torch.full(size, fill_value, **_options(dtype or self.dtype, device=device or self.device, **options))


def _new_filled(value: Any) -> Callable:
    return lambda self, size, **options: _new_full(self, size, value, **options)


def _arange(start: Any, end: Any, **options: Any) -> Tensor:
    return aten.arange.start_step(start, end, 1, **options)


def _eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    options = _options(**options)
    rows, columns = torch.arange(n, device=options["device"]), torch.arange(n if m is None else m, device=options["device"])
    return (rows.unsqueeze(1) == columns).to(options["dtype"])


def _exact(dtype: Any) -> Any:
    dtype = dtype or torch.get_default_dtype()
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.float64


def _linspace(start: Any, end: Any, steps: int, *, dtype=None, device=None, **options: Any) -> Tensor:
    device = next((v.device for v in (start, end) if isinstance(v, Tensor)), None) if device is None else device
    options = _options(dtype, device=device, **options)
    places = torch.arange(steps, **{**options, "dtype": _exact(dtype).to_real()})
    step = (end - start) / max(steps - 1, 1)
    from_start, from_end = start + step * places, end - step * (steps - 1 - places)
    return torch.where(places < (steps + 1) // 2, from_start, from_end).to(options["dtype"])


def _logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype=None, **options: Any) -> Tensor:
    return torch.pow(base, _linspace(start, end, steps, dtype=_exact(dtype), **options)).to(dtype or torch.get_default_dtype())


def _hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    places = torch.arange(window_length, **_options(**options))
    if window_length <= 1:
        return places + 1
    return 0.5 - 0.5 * torch.cos(places * (2 * math.pi / (window_length if periodic else window_length - 1)))


def _bernoulli(self: Tensor, *, generator=None) -> Tensor:
    drawn = torch.rand(self.shape, generator=generator, dtype=torch.float32, device=self.device)
    return (drawn < self).to(self.dtype)


# Views and positions


def _squeeze(self: Tensor, dim: Any = None) -> Tensor:
    dims = dims_of(self, dim)
    return aten.view(self, [n for d, n in enumerate(self.shape) if n != 1 or d not in dims])


def _transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(self.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return self.permute(order)


def _t(self: Tensor) -> Tensor:
    return self.permute(list(range(self.dim()))[::-1])


def _split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    starts = [sum(split_sizes[:i]) for i in range(len(split_sizes))]
    return [self.narrow(dim, start, size) for start, size in zip(starts, split_sizes)]


def _split(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    length = self.shape[dim]
    if split_size == 0:
        return [self.narrow(dim, 0, 0)]
    sizes = [min(split_size, length - start) for start in range(0, length, split_size)]
    return _split_with_sizes(self, sizes or [0], dim)


def _unbind(self: Tensor, dim: int = 0) -> list[Tensor]:
    return [self.select(dim, i) for i in range(self.shape[dim])]


def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return torch.cat([t.unsqueeze(dim) for t in tensors], dim)


def _diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    rank = self.dim() + 1
    dim1, dim2 = dim1 % rank, dim2 % rank
    if dim1 > dim2:
        dim1, dim2, offset = dim2, dim1, -offset
    padded = aten.constant_pad_nd(self, [max(offset, 0), max(-offset, 0)], 0)  # the diagonal's column of each row is in place
    column = padded.unsqueeze(-2).expand(*padded.shape[:-1], padded.shape[-1], padded.shape[-1])
    places = torch.arange(padded.shape[-1], device=self.device)
    matrix = torch.where(places - places.unsqueeze(1) == offset, column, torch.zeros((), dtype=self.dtype, device=self.device))
    return matrix.movedim((-2, -1), (dim1, dim2))


def _channel_shuffle(self: Tensor, groups: int) -> Tensor:
    n, c, *rest = self.shape
    return self.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(n, c, *rest)


def _pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    *batch, c, h, w = self.shape
    r, b = upscale_factor, len(batch)
    x = self.reshape(*batch, c // (r * r), r, r, h, w).permute([*range(b), b, b + 3, b + 1, b + 4, b + 2])
    return x.reshape(*batch, c // (r * r), h * r, w * r)


def _pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    *batch, c, h, w = self.shape
    r, b = downscale_factor, len(batch)
    x = self.reshape(*batch, c, h // r, r, w // r, r).permute([*range(b), b, b + 2, b + 4, b + 1, b + 3])
    return x.reshape(*batch, c * r * r, h // r, w // r)


def _roll(self: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    shifts, dims = ([v] if isinstance(v, int) else list(v) for v in (shifts, dims))
    if not dims:
        return _roll(self.reshape(-1), shifts, [0]).view(self.shape)
    result = self
    for shift, dim in zip(shifts, dims):
        n = self.shape[dim]
        result = result.index_select(dim, (torch.arange(n, device=self.device) - shift) % max(n, 1))
    return result


def _rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    a, b = dims
    if k % 4 == 0:
        return _clone(self)
    if k % 4 == 2:
        return self.flip([a, b])
    return self.flip([b]).transpose(a, b) if k % 4 == 1 else self.flip([a]).transpose(a, b)


def _block_diag(tensors: Sequence[Tensor]) -> Tensor:
    dtype = tensors[0].dtype
    for t in tensors:
        dtype = torch.promote_types(dtype, t.dtype)
    blocks = [t.to(dtype).reshape(*[1] * (2 - t.dim()), *t.shape) for t in tensors]
    width, rows, before = sum(t.shape[1] for t in blocks), [], 0
    for t in blocks:
        rows.append(aten.constant_pad_nd(t, [before, width - before - t.shape[1]], 0))
        before += t.shape[1]
    return torch.cat(rows)


def _triangle(keeps: Callable) -> Callable:
    def part(self: Tensor, diagonal: int = 0) -> Tensor:
        kept = keeps(_places(self, -1) - _places(self, -2), diagonal)
        return torch.where(kept, self, torch.zeros((), dtype=self.dtype, device=self.device))

    return part


def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    value = value if isinstance(value, Tensor) else torch.tensor(value, device=self.device)
    return torch.where(mask, value.to(self.dtype), self)


def _fill(self: Tensor, value: Any) -> Tensor:
    return masked_fill(self, torch.ones((), dtype=torch.bool, device=self.device), value)


def _put(self: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """Writes, or adds, slices of a dimension. A tensor without dimensions is one of a single element."""
    x, source = (t.reshape(1) if t.dim() == 0 else t for t in (self, source))
    result = aten.index_put(x.movedim(dim, 0), [index.reshape(-1).long()], source.movedim(dim, 0), accumulate)
    return result.movedim(0, dim).reshape(self.shape)


def _index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    return _put(self, dim, index, scaled(source, alpha), True)


def _index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    chosen = torch.zeros(self.shape[dim] if self.dim() else 1, dtype=torch.bool, device=self.device)
    chosen = aten.index_put(chosen, [index.reshape(-1).long()], torch.ones((), dtype=torch.bool, device=self.device))
    shape = [1] * self.dim()
    if shape:
        shape[dim] = -1
    return masked_fill(self, chosen.view(shape), value)


def _select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    return torch.where(_places(self, dim) == index % self.shape[dim], src.unsqueeze(dim), self)


def _affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    def steps(n: int) -> Tensor:
        places = torch.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else torch.zeros(1).to(theta)
        return places if align_corners else places * ((n - 1) / n)

    axes = torch.meshgrid(*map(steps, size[2:]), indexing="ij")
    points = torch.stack([*axes[::-1], torch.ones_like(axes[0])], -1).reshape(1, -1, len(axes) + 1)
    return (points @ theta.transpose(1, 2)).reshape(size[0], *size[2:], len(axes))


# By operator, or "operator.overload".
DECOMPOSITIONS: dict[str, Callable] = {
    "_reshape_alias": lambda self, size, stride: aten.view(self, size),
    "_unsafe_view": lambda self, size: aten.view(self, size),
    "affine_grid_generator": _affine_grid,
    "alias_copy": _clone,
    "arange.default": lambda end, **options: _arange(0, end, **options),
    "arange.start": _arange,
    "bernoulli.default": _bernoulli,
    "block_diag": _block_diag,
    "channel_shuffle": _channel_shuffle,
    "diag_embed": _diag_embed,
    "diagonal_copy": _copied(torch.diagonal),
    "expand_copy": _copied(lambda self, size, *, implicit=False: self.expand(size)),
    "eye": _eye,
    "fill.Scalar": _fill,
    "fill.Tensor": _fill,
    "fill_": _fill,
    "hann_window": _hann_window,
    "index_add": _index_add,
    "index_copy": lambda self, dim, index, source: _put(self, dim, index, source, False),
    "index_fill": _index_fill,
    "linspace": _linspace,
    "logspace": _logspace,
    "masked_fill": masked_fill,
    "new_full": _new_full,
    "new_ones": _new_filled(1),
    "new_zeros": _new_filled(0),
    "ones.default": _filled(1),
    "ones_like": _filled_like(1),
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "roll": _roll,
    "rot90": _rot90,
    "select_scatter": _select_scatter,
    "split.Tensor": _split,
    "split_with_sizes_copy": _copied(_split_with_sizes),
    "squeeze.default": _squeeze,
    "squeeze.dim": _squeeze,
    "squeeze_copy": _copied(_squeeze),
    "stack": _stack,
    "t.default": _t,
    "t_copy": _copied(_t),
    "take": lambda self, index: aten.index(self.reshape(-1), [index]),
    "transpose.int": _transpose,
    "transpose_copy": _copied(_transpose),
    "tril": _triangle(lambda place, diagonal: place <= diagonal),
    "triu": _triangle(lambda place, diagonal: place >= diagonal),
    "unbind.int": _unbind,
    "unfold_copy": _copied(lambda self, dimension, size, step: self.unfold(dimension, size, step)),
    "unsafe_split.Tensor": _split,
    "unsafe_split_with_sizes.default": _split_with_sizes,
    "unsqueeze_copy": _copied(torch.unsqueeze),
    "zero": lambda self: torch.full_like(self, 0),
    "zeros.default": _filled(0),
    "zeros_like": _filled_like(0),
}  # fmt: skip
