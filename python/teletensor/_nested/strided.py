"""StridedNested: a nested tensor with layout=torch.strided, whose constituents may differ in each dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import strided
from .._options import check_memory_format
from .base import AnyNested, not_implemented

# Functions by the name of the engine's operator, set by constituents.py: (arguments, into) -> result.
handlers: dict[str, Callable[[list, list | None], Any]] = {}


class StridedNested(AnyNested):
    """Tensors of several sizes with the same number of dimensions. Made by made_of().

    Attributes:
        _elements: all elements, one constituent after another: one dimension.
        _sizes: the constituents' sizes.
        _ndim: the number of dimensions of a constituent.
    """

    _elements: Tensor
    _sizes: list[tuple[int, ...]]
    _ndim: int
    layout = strided
    _handlers = handlers

    def _with(self, elements: Tensor) -> StridedNested:
        return made_of(elements, self._sizes, self._ndim)

    # -- sizes

    def dim(self) -> int:
        """The number of dimensions, the first of which is that of the constituents."""
        return self._ndim + 1

    def size(self, dim: int | None = None) -> int:
        """One of the sizes. Raises RuntimeError for a dimension in which constituents differ, and without ``dim``."""
        if dim is None:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
        place = self._dim(dim)
        if place == 0:
            return len(self._sizes)
        found = {s[place - 1] for s in self._sizes}
        if len(found) > 1:
            raise RuntimeError(
                f"Given dimension {place} is irregular and does not have a size."
            )
        return found.pop() if found else 0

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """Raises RuntimeError: the constituents' sizes differ."""
        return self.size()

    def stride(self, dim: int | None = None) -> Any:
        """Raises RuntimeError: the constituents' strides differ."""
        raise RuntimeError(f"Internal error: NestedTensorImpl doesn't support strides (dim={dim}). Please file an issue.")

    def numel(self) -> int:
        """The number of elements."""
        return self._elements.numel()

    def __len__(self) -> int:
        return len(self._sizes)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True: the constituents' elements follow each other."""
        check_memory_format("is_contiguous", memory_format)
        return True

    def _dim(self, dim: int) -> int:
        n = self._ndim + 1
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        return dim % n

    def _nested_tensor_size(self) -> Tensor:
        """The constituents' sizes: int64 [constituents, dimensions]."""
        return _C.tensor([list(s) for s in self._sizes], dtype=_C.int64).reshape(len(self._sizes), self._ndim)

    def _nested_tensor_strides(self) -> Tensor:
        """The constituents' strides: int64 [constituents, dimensions]."""
        rows = [[math.prod(s[d + 1 :]) for d in range(self._ndim)] for s in self._sizes]
        return _C.tensor(rows, dtype=_C.int64).reshape(len(self._sizes), self._ndim)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        """Where the constituents begin among the elements: int64 [constituents]."""
        starts, at = [], 0
        for size in self._sizes:
            starts.append(at)
            at += math.prod(size)
        return _C.tensor(starts, dtype=_C.int64)

    def is_same_size(self, other: Any) -> bool:
        """Whether both have constituents of the same sizes."""
        return isinstance(other, StridedNested) and self._sizes == other._sizes

    # -- constituents

    def _constituents(self) -> list[Tensor]:
        """Views of the constituents."""
        parts = self._elements.split([math.prod(s) for s in self._sizes]) if self._sizes else ()
        return [p.view(s) for p, s in zip(parts, self._sizes, strict=True)]

    def values(self) -> Tensor:
        """All elements, one constituent after another."""
        return self._elements.view_as(self._elements)

    def isreal(self) -> StridedNested:
        """Whether the elements' imaginary parts are zero."""
        return self._with(self._elements.isreal())

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A tensor that is not nested, in which padding follows each constituent in each dimension.

        An ``output_size`` may have a larger batch, of rows of padding. Raises RuntimeError if it is less than a constituent's.
        """
        if not self._sizes:
            raise RuntimeError("at least one constituent tensor should have non-zero numel")
        most = [max(s[d] for s in self._sizes) for d in range(self._ndim)]
        wanted = [len(self._sizes), *most] if output_size is None else list(output_size)
        if len(wanted) != self._ndim + 1:
            raise RuntimeError(f"Length of output_size does not match NestedTensor dims. Expected {self._ndim + 1}, got {len(wanted)}")
        if wanted[0] < len(self._sizes) or any(w < m for w, m in zip(wanted[1:], most, strict=True)):
            raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
        rows = []
        for tensor in self._constituents():
            ends = [w - s for w, s in zip(wanted[1:], tensor.shape, strict=True)]
            rows.append(_C.ops.pad(tensor, [n for end in reversed(ends) for n in (0, end)], float(padding)))
        rows += [_C.torch.full_like(rows[0], padding)] * (wanted[0] - len(rows))
        return _C.torch.stack(rows)

    def view(self, *size: Any) -> AnyNested:  # type: ignore[override]
        """The same elements with other sizes: -1 stands for the own size of a dimension, and for what remains of later ones."""
        return handlers["view"]([self, size], None)

    def reshape(self, *shape: Any) -> AnyNested:  # type: ignore[override]
        """See view()."""
        return handlers["view"]([self, shape], None)

    def expand(self, *size: Any) -> AnyNested:  # type: ignore[override]
        """Not implemented."""
        raise not_implemented("expand", f"expanding to {size} is not implemented for layout=torch.strided")

    broadcast_to = expand

    def unflatten(self, dim: int, sizes: Any) -> AnyNested:  # type: ignore[override]
        """Splits a dimension into several."""
        return handlers["unflatten"]([self, dim, list(sizes)], None)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> AnyNested:  # type: ignore[override]
        """Joins dimensions, among which is not the first."""
        return handlers["flatten"]([self, start_dim, end_dim], None)

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        if not items or not isinstance(items[0], int) or isinstance(items[0], bool):
            raise not_implemented("index", "index its constituents")
        if not -len(self._sizes) <= items[0] < len(self._sizes):
            raise IndexError(f"index {items[0]} is out of bounds for dimension 0 with size {len(self._sizes)}")
        chosen = self._constituents()[items[0]]
        return chosen[items[1:]] if items[1:] else chosen

    def __setitem__(self, index: Any, value: Any) -> None:
        self[index].copy_(value if isinstance(value, Tensor) else _C.tensor(value, dtype=self.dtype, device=self.device))

    # -- conversions and text

    def to(self, *args: Any, **keywords: Any) -> StridedNested:
        """The tensor with another dtype, or on another device."""
        moved = self._elements.to(*args, **keywords)
        return self if moved is self._elements else self._with(moved)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the elements' type; or the tensor with another dtype."""
        result = self._elements.type(dtype, non_blocking)
        return result if isinstance(result, str) else self if result is self._elements else self._with(result)

    def cpu(self, memory_format: Any = None) -> StridedNested:
        """Copies to the engine's CPU."""
        check_memory_format("cpu", memory_format)
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> StridedNested:
        """Copies to a GPU of the engine."""
        check_memory_format("cuda", memory_format)
        return self.to(_C.device("cuda" if device is None else device), non_blocking=non_blocking)

    def contiguous(self, memory_format: Any = None) -> StridedNested:
        """The tensor itself."""
        check_memory_format("contiguous", memory_format)
        return self

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """Returns PyTorch's notation. Waits for the values, unless ``tensor_contents`` replaces them."""
        parts = [tensor_contents] if tensor_contents is not None else [repr(t.detach()) for t in self._constituents()]
        rows = ",\n".join("  " + p.replace("\n", "\n  ") for p in parts)
        history = f", grad_fn={self.grad_fn}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"nested_tensor([\n{rows}\n]{history})" if parts else f"nested_tensor([\n\n]{history})"

    __str__ = __repr__

    def __reduce_ex__(self, _protocol: Any) -> tuple:
        """Pickles the elements and sizes. Waits for the engine."""
        return _unpickled, (self._elements.detach(), self._sizes, self._ndim, self.requires_grad)


StridedNested.__module__ = "teletensor"


def made_of(elements: Tensor, sizes: list[tuple[int, ...]], ndim: int) -> StridedNested:
    """The nested tensor with these elements, which it shares."""
    made = _C._make_wrapper(StridedNested, (len(sizes), *[1] * ndim), None, 0, elements.dtype, elements.device)
    made._elements, made._sizes, made._ndim = elements, sizes, ndim
    return made


def from_list(tensors: list[Tensor], dtype: Any, device: Any) -> StridedNested:
    """The nested tensor of copies of tensors, with their gradient history."""
    if not tensors:
        return made_of(_C.torch.empty(0, dtype=dtype or _C.default_dtype(), device=device or _C.default_device()), [], 0)
    if len({t.dim() for t in tensors}) > 1:
        dims = sorted({t.dim() for t in tensors})
        raise RuntimeError(
            f"All Tensors given to nested_tensor must have the same dimension. Found dimension {dims[1]} for Tensor at index 1 "
            f"and dimension {dims[0]} for Tensor at index 0."
        )
    first = tensors[0]
    target, wanted = device or first.device, dtype or first.dtype
    flat = [t.to(device=target, dtype=wanted).reshape(-1) for t in tensors]
    return made_of(_C.torch.cat(flat), [tuple(t.shape) for t in tensors], first.dim())


def _unpickled(elements: Tensor, sizes: list, ndim: int, requires_grad: bool) -> StridedNested:
    return made_of(elements, [tuple(s) for s in sizes], ndim).requires_grad_(requires_grad)
