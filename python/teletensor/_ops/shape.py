"""Functions that split, stack, copy and write pieces of tensors."""

from __future__ import annotations

import math
from typing import Callable

from .. import _C
from .._C import Tensor
from .out_variant import exact_out_variant, out_variants

__all__ = [
    "as_strided_scatter", "column_stack", "constant_pad_nd", "diagonal_scatter", "dsplit", "dstack", "empty_permuted",
    "empty_strided", "hsplit", "row_stack", "select_scatter", "slice_scatter", "split_with_sizes", "sum_to_size",
    "unravel_index", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "vsplit",
]  # fmt: skip

_torch, _ops = _C.torch, _C.ops
unsafe_chunk, unsafe_split, row_stack = _torch.chunk, _torch.split, _torch.vstack


def split_with_sizes(input: Tensor, split_sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits input into pieces of the given sizes along dim."""
    return _ops.split_with_sizes(input, list(split_sizes), dim)


unsafe_split_with_sizes = split_with_sizes


def _as_tuple(tensors: tuple) -> tuple:
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def column_stack(*tensors) -> Tensor:
    """Concatenates the tensors along dimension 1; vectors become columns."""
    return _torch.cat([t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in _as_tuple(tensors)], 1)


def dstack(*tensors) -> Tensor:
    """Concatenates the tensors along the third dimension."""
    if not _as_tuple(tensors):
        raise RuntimeError("dstack expects a non-empty TensorList")
    from .join import atleast_3d

    return _torch.cat([atleast_3d(t) for t in _as_tuple(tensors)], 2)


def _splitter(name: str, min_dims: int, dim: int) -> Callable:
    def split(input: Tensor, indices_or_sections) -> tuple[Tensor, ...]:
        if input.dim() < min_dims:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {min_dims} dimension, "
                f"but got a tensor with {input.dim()} dimensions!"
            )
        along = 0 if dim == 1 and input.dim() == 1 else dim
        if isinstance(indices_or_sections, int):
            size = input.shape[along]
            if indices_or_sections <= 0 or size % indices_or_sections:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {size} is not "
                    f"divisible by the split_size {indices_or_sections}!"
                )
            return _torch.split(input, size // indices_or_sections, along)
        ends = [0, *indices_or_sections, input.shape[along]]
        return tuple(input.narrow(along, a, max(b - a, 0)) for a, b in zip(ends, ends[1:]))

    split.__name__, split.__doc__ = name, f"Splits input into equal pieces, or at indices, along dimension {dim}."
    return split


hsplit, vsplit, dsplit = _splitter("hsplit", 1, 1), _splitter("vsplit", 2, 0), _splitter("dsplit", 3, 2)


def _scatter_function(name: str, view: Callable) -> Callable:
    def scatter(input: Tensor, src: Tensor, *args, **kwargs) -> Tensor:
        result = input.clone()
        piece = view(result, *args, **kwargs)
        if piece.shape != src.shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
                f"slice size = {list(piece.shape)}"
            )
        piece.copy_(src)
        return result

    scatter.__name__, scatter.__doc__ = name, f"Copies input and writes src to its {name.removesuffix('_scatter')}."
    return scatter


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return _ops.slice(input, dim, start, end, step)


select_scatter = _scatter_function("select_scatter", lambda t, dim, index: t.select(dim, index))
slice_scatter = _scatter_function("slice_scatter", _slice)
diagonal_scatter = _scatter_function(
    "diagonal_scatter", lambda t, offset=0, dim1=0, dim2=1: t.diagonal(offset, dim1, dim2)
)
as_strided_scatter = _scatter_function("as_strided_scatter", lambda t, *args, **kwargs: t.as_strided(*args, **kwargs))


def sum_to_size(input: Tensor, *size) -> Tensor:
    """Sums over the dimensions that broadcasting from `size` would expand."""
    size = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
    extra_dims = input.dim() - len(size)
    if extra_dims < 0 or any(n not in (1, m) for n, m in zip(size, input.shape[extra_dims:])):
        raise RuntimeError(f"size {size} is not expandable to size {list(input.shape)}.")
    if not size:
        return input.sum()
    reduced = [extra_dims + d for d, n in enumerate(size) if n == 1 and input.shape[extra_dims + d] != 1]
    summed_dims = [*range(extra_dims), *reduced]
    return input.sum(summed_dims, True).reshape(size) if summed_dims else input


def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Converts indices into a flattened tensor to one index per dimension."""
    shape = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    result, rest = [], indices
    for d in range(len(shape)):
        inner = math.prod(shape[d + 1 :])
        result.append(rest.div(inner, rounding_mode="floor"))
        rest = rest % inner
    return tuple(result)


def constant_pad_nd(input: Tensor, pad, value=0) -> Tensor:
    """functional.pad with a constant value."""
    return _ops.pad(input, list(pad), value)


def empty_strided(size, stride, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor of the given sizes and strides."""
    count = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    buffer = _torch.empty(count, dtype=dtype, device=device)
    return buffer.as_strided(list(size), list(stride)).requires_grad_(requires_grad)


def empty_permuted(size, physical_layout, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor of the given sizes whose dimensions are laid out in the given order."""
    order = list(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(range(len(order))):
        raise RuntimeError(f"Dimensions of physical_layout must be different and in range, got {order}")
    back = [order.index(d) for d in range(len(order))]
    return _torch.empty([size[d] for d in order], dtype=dtype, device=device).permute(back).requires_grad_(requires_grad)


def _copy_function(name: str) -> Callable:
    view = getattr(_torch, name, None) or getattr(Tensor, name, None) or getattr(_ops, name)

    @exact_out_variant
    def copy(*args, **kwargs):
        result = view(*args, **kwargs)
        return tuple(t.clone() for t in result) if isinstance(result, (tuple, list)) else result.clone()

    copy.__name__, copy.__doc__ = f"{name}_copy", f"A copy of {name}'s view."
    return copy


globals().update(out_variants(globals(), ("column_stack", "dstack"), exact=("slice_scatter",)))
# torch's functions that return copies instead of views.
view_copies = {
    f"{name}_copy": _copy_function(name)
    for name in (
        "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split",
        "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
    )
}  # fmt: skip
for _function in (
    as_strided_scatter, diagonal_scatter, dsplit, hsplit, select_scatter, slice_scatter, split_with_sizes, sum_to_size, vsplit,
):
    setattr(Tensor, _function.__name__, _function)
Tensor.unsafe_chunk, Tensor.unsafe_split, Tensor.narrow_copy = Tensor.chunk, Tensor.split, view_copies["narrow_copy"]
