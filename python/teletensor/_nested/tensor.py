"""NestedTensor: a nested tensor with layout=torch.jagged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import jagged
from .._options import check_memory_format
from .base import AnyNested, not_implemented
from .ragged import NestedInt, Ragged

# Functions by the name of the engine's operator, set by the files of operators: (arguments, into) -> result.
handlers: dict[str, Callable[[list, list | None], Any]] = {}


class NestedTensor(AnyNested):
    """Sequences of different lengths: one dimension, after the batch dimension, is ragged. Made by wrapped().

    The engine has the values, whose ragged dimension holds all sequences one after another, and the offsets into it.

    Attributes:
        _values: [*, total, *]: the dimensions of the nested tensor except for the batch.
        _ragged: the offsets and lengths.
        _ragged_idx: the ragged dimension, at least 1.
    """

    _elements: Tensor
    _ragged: Ragged
    _ragged_idx: int
    layout = jagged
    _handlers = handlers

    def _with(self, elements: Tensor) -> NestedTensor:
        return wrapped(elements, self._ragged, self._ragged_idx)

    # -- components

    def values(self) -> Tensor:
        """The values of all sequences: a view with gradient history."""
        return self._elements.view_as(self._elements)

    def offsets(self) -> Tensor:
        """Where the sequences begin in the values: [sequences + 1], as it was passed; else int64."""
        return self._ragged.given

    def lengths(self) -> Tensor | None:
        """The lengths of sequences that do not end where the next one begins: [sequences], or None."""
        return self._ragged.given_lengths

    @property
    def _values(self) -> Tensor:
        return self._elements

    @property
    def _offsets(self) -> Tensor:
        return self._ragged.offsets

    @property
    def _lengths(self) -> Tensor | None:
        return self._ragged.lengths

    @property
    def _total(self) -> int:
        return self._elements.shape[self._ragged_idx - 1]

    def _get_max_seqlen(self) -> int:
        return self._ragged.max_seqlen()

    def _get_min_seqlen(self) -> int:
        return self._ragged.min_seqlen()

    @property
    def _max_seqlen(self) -> int:
        return self._ragged.max_seqlen()

    @property
    def _min_seqlen(self) -> int:
        return self._ragged.min_seqlen()

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return self._ragged.given_max if self._ragged._sizes is None else self._ragged.max_seqlen()

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return self._ragged.given_min if self._ragged._sizes is None else self._ragged.min_seqlen()

    # -- sizes

    @property
    def _size(self) -> tuple:
        sizes = list(self._elements.shape)
        sizes[self._ragged_idx - 1] = NestedInt(self._ragged)
        return (self._ragged.batch, *sizes)

    @property
    def _strides(self) -> tuple:
        strides = self._elements.stride()
        return (NestedInt(self._ragged, strides[self._ragged_idx - 1]), *strides)

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The sizes; that of the ragged dimension is equal only to that of tensors with the same offsets."""
        return _C.Size(self._size)

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or one of them."""
        return self.shape if dim is None else self._size[self._dim(dim)]

    def stride(self, dim: int | None = None) -> Any:
        """The strides, or one of them."""
        return self._strides if dim is None else self._strides[self._dim(dim)]

    def numel(self) -> int:
        """The number of elements. Waits for the lengths of sequences that do not end where the next one begins."""
        if self._ragged.lengths is None:
            return self._elements.numel()
        rest = self._elements.shape[: self._ragged_idx - 1] + self._elements.shape[self._ragged_idx :]
        return sum(self._ragged.sizes()) * math.prod(rest)

    def __len__(self) -> int:
        return self._ragged.batch

    def storage_offset(self) -> int:
        """The values' storage offset."""
        return self._elements.storage_offset()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values are, and each sequence ends where the next one begins."""
        check_memory_format("is_contiguous", memory_format)
        return self._ragged.lengths is None and self._elements.is_contiguous()

    def _dim(self, dim: int, extra: int = 0) -> int:
        """A dimension, counted from 0; `extra` dimensions are to be added."""
        n = len(self._elements.shape) + 1 + extra
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise TypeError(f"expected a dimension to be an int, got {type(dim).__name__}")
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        return dim % n

    def _inner(self, dim: int, name: str, extra: int = 0) -> int:
        """The values' dimension for one of the tensor. Raises RuntimeError for the batch and the ragged dimension."""
        wrapped_dim = self._dim(dim, extra)
        if wrapped_dim == self._ragged_idx and not extra:
            raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
        if wrapped_dim == 0:
            raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
        return wrapped_dim - 1

    def _same_structure(self, size: tuple) -> bool:
        """Whether sizes begin with this tensor's, up to the ragged one; -1 stands for any."""
        end = self._ragged_idx + 1
        return len(size) >= end and all(given in (own, -1) for own, given in zip(self._size[:end], size[:end], strict=True))

    # -- views that take sizes

    def _viewed(self, name: str, size: tuple) -> NestedTensor:
        if len(size) == 1 and isinstance(size[0], (tuple, list)):
            size = tuple(size[0])
        if len(size) < 2 or not self._same_structure(size):
            raise RuntimeError(f"{name}(): cannot view shape {self._size} as {size}")
        inner = [*self._elements.shape[: self._ragged_idx], *size[self._ragged_idx + 1 :]]
        if any(isinstance(s, NestedInt) for s in inner):
            raise RuntimeError(f"{name}(): cannot view shape {self._size} as {size}")
        return self._with(getattr(self._elements, name)(inner))

    def view(self, *size: Any) -> NestedTensor:  # type: ignore[override]
        """A view with other sizes after the ragged dimension; or, of a dtype, a view of the same bytes."""
        if len(size) == 1 and isinstance(size[0], _C.dtype):
            raise not_implemented("view_of_dtype")
        return self._viewed("view", size)

    def reshape(self, *shape: Any) -> NestedTensor:  # type: ignore[override]
        """The tensor with other sizes after the ragged dimension; a copy if necessary."""
        return self._viewed("reshape", shape)

    def expand(self, *size: Any) -> NestedTensor:  # type: ignore[override]
        """A view in which dimensions of size 1 have other sizes."""
        size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        if len(size) != self.dim() or not self._same_structure((*size[:1], *self._size[1 : self._ragged_idx], *size[self._ragged_idx :])):
            raise RuntimeError(f"expand(): cannot expand shape {self._size} -> {size}")
        inner = list(size[1:])
        inner[self._ragged_idx - 1] = -1
        return self._with(self._elements.expand(inner))

    def broadcast_to(self, size: Any) -> NestedTensor:  # type: ignore[override]
        """See expand()."""
        if len(size) > self.dim():
            raise ValueError(
                "broadcast_to(): broadcasting to a higher-dim shape is currently not supported for nested tensors with the jagged layout"
            )
        return self.expand(*[1] * (self.dim() - len(size)), *size)

    def unflatten(self, dim: int, sizes: Any) -> NestedTensor:  # type: ignore[override]
        """Splits a dimension, neither the batch nor the ragged one, into several."""
        inner = self._inner(dim, "unflatten")
        split = self._elements.unflatten(inner, sizes)
        moved = split.dim() - self._elements.dim() if inner < self._ragged_idx - 1 else 0
        return wrapped(split, self._ragged, self._ragged_idx + moved)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:  # type: ignore[override]
        """Joins dimensions, among which are neither the batch nor the ragged one."""
        start, end = self._inner(start_dim, "flatten"), self._inner(end_dim, "flatten")
        if start <= self._ragged_idx - 1 <= end:
            raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
        joined = self._elements.flatten(start, end)
        moved = self._elements.dim() - joined.dim() if end < self._ragged_idx - 1 else 0
        return wrapped(joined, self._ragged, self._ragged_idx - moved)

    def isreal(self) -> NestedTensor:
        """Whether the elements' imaginary parts are zero."""
        return self._with(self._elements.isreal())

    def _normalized(self, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> NestedTensor:
        """layer_norm() over the ragged dimension and all after it, for each sequence."""
        if weight is not None or bias is not None:
            raise not_implemented("layer_norm", "weight and bias over the ragged dimension are not implemented")
        if tuple(normalized_shape) != self._size[1:] or self._ragged_idx != 1:
            raise RuntimeError(f"layer_norm(): cannot normalize shape {self._size} over {tuple(normalized_shape)}")
        return handlers["layer_norm over sequences"]([self, eps], None)

    def _bag(self, function: Callable, args: tuple, keywords: dict) -> Tensor:
        weights = keywords.get("per_sample_weights")
        if isinstance(weights, NestedTensor) and weights._size == self._size:
            keywords = {**keywords, "per_sample_weights": weights._elements}
        nested = any(getattr(a, "is_nested", False) for a in (*args, *keywords.values()))
        if self.dim() != 2 or self._ragged.lengths is not None or nested:
            raise not_implemented("embedding_bag", "indices of two dimensions, and weights per sample of the same sizes, may be nested")
        if keywords.get("offsets") is not None:
            raise ValueError("if input is nested, then offsets has to be None")
        return function(self._elements, *args, **{**keywords, "offsets": self._ragged.offsets[:-1]})

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A tensor that is not nested, in which each sequence is followed by padding.

        Args:
            padding: the number in places that have none.
            output_size: the sizes of the result; only that of the ragged dimension may differ, and at most cuts sequences off.
        """
        return handlers["to_padded_tensor"]([self, padding, output_size], None)

    # -- conversions and text

    def __getitem__(self, index: Any) -> Any:
        return handlers["__getitem__"]([self, index], None)

    def __setitem__(self, index: Any, value: Any) -> None:
        handlers["__setitem__"]([self, index, value], None)

    def to(self, *args: Any, **keywords: Any) -> NestedTensor:
        """The tensor with another dtype, or on another device."""
        moved = self._elements.to(*args, **keywords)
        return self if moved is self._elements else wrapped(moved, self._ragged.to(moved.device), self._ragged_idx)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the elements' type; or the tensor with another dtype."""
        result = self._elements.type(dtype, non_blocking)
        return result if isinstance(result, str) else self if result is self._elements else self._with(result)

    def cpu(self, memory_format: Any = None) -> NestedTensor:
        """Copies to the engine's CPU."""
        check_memory_format("cpu", memory_format)
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> NestedTensor:
        """Copies to a GPU of the engine."""
        check_memory_format("cuda", memory_format)
        return self.to(_C.device("cuda" if device is None else device), non_blocking=non_blocking)

    def contiguous(self, memory_format: Any = None) -> NestedTensor:
        """The tensor itself, or a copy in which the sequences follow each other."""
        check_memory_format("contiguous", memory_format)
        return handlers["contiguous"]([self], None)

    def _dense_factory(self, name: str, size: tuple, keywords: dict) -> Tensor:
        return getattr(self._elements, name)(*size, **keywords)

    def new_zeros(self, *size: Any, **keywords: Any) -> Tensor:
        """A tensor that is not nested; see Tensor.new_zeros()."""
        return self._dense_factory("new_zeros", size, keywords)

    def new_ones(self, *size: Any, **keywords: Any) -> Tensor:
        """A tensor that is not nested; see Tensor.new_ones()."""
        return self._dense_factory("new_ones", size, keywords)

    def new_empty(self, *size: Any, **keywords: Any) -> Tensor:
        """A tensor that is not nested; see Tensor.new_empty()."""
        return self._dense_factory("new_empty", size, keywords)

    def new_full(self, *size: Any, **keywords: Any) -> Tensor:
        """A tensor that is not nested; see Tensor.new_full()."""
        return self._dense_factory("new_full", size, keywords)

    def is_same_size(self, other: Any) -> bool:
        """Whether both have the same sizes, the same ragged one included."""
        return isinstance(other, NestedTensor) and self._size == other._size

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """Returns PyTorch's notation. Waits for the offsets, unless ``tensor_contents`` replaces them."""
        history = f", grad_fn={self.grad_fn}" if self.grad_fn else f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        offsets = tensor_contents or self._ragged.offsets
        return f"NestedTensor(size={self._size}, offsets={offsets}{history}, contiguous={self.is_contiguous()})"

    __str__ = __repr__

    def __reduce_ex__(self, _protocol: Any) -> tuple:
        """Pickles the components. Waits for the engine."""
        state = (self._elements.detach(), self._ragged.given, self._ragged.given_lengths, self._ragged_idx, self.requires_grad)
        return _unpickled, state


NestedTensor.__module__ = "teletensor"


def wrapped(values: Tensor, ragged: Ragged, ragged_idx: int = 1) -> NestedTensor:
    """The nested tensor with these values, which it shares."""
    made = _C._make_wrapper(NestedTensor, (ragged.batch, *values.shape), None, 0, values.dtype, values.device)
    made._elements, made._ragged, made._ragged_idx = values, ragged, ragged_idx
    return made


def _unpickled(values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged_idx: int, requires_grad: bool) -> NestedTensor:
    return wrapped(values, Ragged.of(offsets, lengths, None, None), ragged_idx).requires_grad_(requires_grad)
