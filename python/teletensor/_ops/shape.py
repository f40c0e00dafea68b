"""Functions that split, stack, copy and write pieces of tensors."""

from __future__ import annotations

import functools
import math
from typing import Callable

from .. import _C
from .._C import Tensor
from .._integers import is_int, repeated
from .._layouts import contiguous_format, strided
from .._options import check_flags, check_layout
from .out_variant import exact_out_variant, out_variants
from .overloads import tensor_split

__all__ = [
    "as_strided_scatter", "column_stack", "constant_pad_nd", "diagonal_scatter", "dsplit", "dstack", "empty_permuted",
    "empty_strided", "hsplit", "row_stack", "select_scatter", "slice_scatter", "split_with_sizes", "sum_to_size",
    "unravel_index", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "vsplit",
]  # fmt: skip

_torch, _ops = _C.torch, _C.ops
unsafe_chunk, row_stack = _torch.chunk, _torch.vstack


def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Same as split: in-place writes to views are tracked."""
    return _ops.split(input, split_size, dim)


def split_with_sizes(input: Tensor, split_sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits input into pieces of the given sizes along dim."""
    return _ops.split_with_sizes(input, list(split_sizes), dim)


unsafe_split_with_sizes = split_with_sizes


def _as_tuple(tensors: tuple) -> tuple:
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _checked_tensors(name: str, tensors) -> tuple[Tensor, ...]:
    """Raises TypeError unless the argument is a sequence of tensors, RuntimeError if it is empty."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tuple(tensors)


def column_stack(tensors) -> Tensor:
    """Concatenates the tensors along dimension 1; vectors become columns."""
    tensors = _checked_tensors("column_stack", tensors)
    return _torch.cat([t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in tensors], 1)


def dstack(tensors) -> Tensor:
    """Concatenates the tensors along the third dimension."""
    from .join import atleast_3d

    return _torch.cat([atleast_3d(t) for t in _checked_tensors("dstack", tensors)], 2)


def _splitter(name: str, min_dims: int, dim: int) -> Callable:
    def split(input: Tensor, *args, sections: int | None = None, indices=None, indices_or_sections=None) -> tuple[Tensor, ...]:
        given = [*args, *(v for v in (sections, indices, indices_or_sections) if v is not None)]
        if not given or len(given) > 1 and not all(is_int(i) for i in args):
            raise TypeError(f"{name}() expects sections (int) or indices (tuple of ints), got {len(given)} arguments")
        indices_or_sections = given if len(args) > 1 else given[0]
        if input.dim() < min_dims:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {min_dims} dimension, "
                f"but got a tensor with {input.dim()} dimensions!"
            )
        along = 0 if dim == 1 and input.dim() == 1 else dim
        if is_int(indices_or_sections):
            size = input.shape[along]
            if indices_or_sections <= 0 or size % indices_or_sections:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {size} is not "
                    f"divisible by the split_size {indices_or_sections}!"
                )
            if size == 0:
                return tensor_split(input, indices_or_sections, along)
            return _torch.split(input, size // indices_or_sections, along)
        return tensor_split(input, tuple(indices_or_sections), along)

    split.__name__, split.__doc__ = name, f"Splits input into equal pieces, or at indices, along dimension {dim}."
    split.__overloads__ = ("input, sections", "input, indices", "input, *indices", "input, indices_or_sections")
    return split


hsplit, vsplit, dsplit = _splitter("hsplit", 1, 1), _splitter("vsplit", 2, 0), _splitter("dsplit", 3, 2)


def _scatter_function(name: str, view: Callable) -> Callable:
    @functools.wraps(view)
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

    scatter.second_argument = "src"  # for tools that read signatures
    scatter.__name__, scatter.__doc__ = name, f"Copies input and writes src to its {name.removesuffix('_scatter')}."
    return scatter


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return _ops.slice(input, dim, start, end, step)


select_scatter = _scatter_function("select_scatter", lambda input, dim, index: input.select(dim, index))
slice_scatter = _scatter_function("slice_scatter", _slice)
diagonal_scatter = _scatter_function(
    "diagonal_scatter", lambda input, offset=0, dim1=0, dim2=1: input.diagonal(offset, dim1, dim2)
)
def _strided(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    last = (storage_offset or 0) + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size and last >= input.numel():  # else only reading the view would raise, not reading the result
        raise RuntimeError(
            f"as_strided_scatter: sizes {list(size)}, strides {list(stride)} and storage offset {storage_offset or 0} require "
            f"{last + 1} elements, got {input.numel()}"
        )
    return input.as_strided(size, stride, storage_offset)


as_strided_scatter = _scatter_function("as_strided_scatter", _strided)


def sum_to_size(input: Tensor, *sizes, size=None) -> Tensor:
    """Sums over the dimensions that broadcasting from `size` would expand."""
    sizes = sizes if size is None else (*sizes, size)
    size = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    extra_dims = input.dim() - len(size)
    if extra_dims < 0 or any(n not in (1, m) for n, m in zip(size, input.shape[extra_dims:])):
        raise RuntimeError(f"size {size} is not expandable to size {list(input.shape)}.")
    if not size:
        return input.sum()
    reduced = [extra_dims + d for d, n in enumerate(size) if n == 1 and input.shape[extra_dims + d] != 1]
    summed_dims = [*range(extra_dims), *reduced]
    return input.sum(summed_dims, True).reshape(size) if summed_dims else input


sum_to_size.__overloads__ = ("input, size", "input, *size: int")


def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Converts indices into a flattened tensor to one index per dimension.

    Raises:
        TypeError: the indices are no integers, or the shape is neither an int nor a sequence of ints.
        ValueError: the shape has a negative size.
    """
    if indices.dtype == _C.bool or indices.is_floating_point() or indices.is_complex():
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not is_int(shape) and not isinstance(shape, (list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = list(repeated(shape, 1))
    if (wrong := next((n for n in shape if not is_int(n)), None)) is not None:
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(wrong)}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    result, rest = [], indices
    for d in range(len(shape)):
        inner = math.prod(shape[d + 1 :])
        result.append(rest.div(inner, rounding_mode="floor") % shape[d])
        rest = rest % inner
    return tuple(result)


def constant_pad_nd(input: Tensor, pad, value=0) -> Tensor:
    """functional.pad with a constant value."""
    return _ops.pad(input, list(pad), value)


def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """An uninitialised tensor of the given sizes and strides."""
    check_layout("empty_strided", layout)
    check_flags("empty_strided", pin_memory=pin_memory)
    count = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    buffer = _torch.empty(count, dtype=dtype, device=device)
    return buffer.as_strided(list(size), list(stride)).requires_grad_(requires_grad)


def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """An uninitialised tensor of the given sizes whose dimensions are laid out in the given order."""
    check_layout("empty_permuted", layout)
    check_flags("empty_permuted", pin_memory=pin_memory)
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


def _expand(input: Tensor, size, *, implicit: bool = False) -> Tensor:
    check_flags("expand_copy", implicit=implicit)  # does not change the result
    return input.expand(size)


def _narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """torch.narrow; of sparse tensors, which have no views of a part, Tensor.narrow_copy."""
    return input.narrow_copy(dim, start, length) if input.is_sparse else input.narrow(dim, start, length)


_VIEWS = {"narrow": _narrow, "split": unsafe_split, "split_with_sizes": split_with_sizes, "expand": _expand}


def _contiguous_copy(view: Tensor) -> Tensor:
    return view.clone(memory_format=contiguous_format) if view.layout == strided else view.clone()  # others have no formats


def _copy_function(name: str) -> Callable:
    view = _VIEWS.get(name) or getattr(_torch, name, None) or getattr(Tensor, name, None) or getattr(_ops, name)

    @exact_out_variant
    def copy(input: Tensor, *args, **kwargs):
        result = view(input, *args, **kwargs)
        if isinstance(result, (tuple, list)):
            return tuple(map(_contiguous_copy, result))
        return _contiguous_copy(result)

    functools.update_wrapper(copy.__wrapped__, view)
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
Tensor.unsafe_chunk, Tensor.unsafe_split, Tensor.narrow_copy = Tensor.chunk, unsafe_split, view_copies["narrow_copy"]
