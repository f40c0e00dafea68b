"""Sparse tensors that vmap maps over: sparse_coo tensors with the batch as their first dimension.

Rules call operators with the whole tensor. What has no kernel for it is called once per entry, each of which is a sparse tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C import Tensor
from .._component_tensor import ComponentTensor
from .._layouts import sparse_coo
from .._library.handlers import flat
from ._transformed import Transformed


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse_coo tensor, or one that a transform has made of it."""
    return isinstance(value, (Transformed, ComponentTensor)) and not value.is_nested and value.layout == sparse_coo


def has_sparse(arguments: list) -> bool:
    """Whether an argument of an operator is sparse or nested, or made of a sparse one."""
    return any(isinstance(v, ComponentTensor) or is_sparse(v) for v in flat(arguments))


def narrowed(tensor: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A range of a dimension, for a chunk of the batch; of a sparse tensor, a copy."""
    return tensor.narrow_copy(dim, start, length) if is_sparse(tensor) else tensor.narrow(dim, start, length)


def _refuse(name: str) -> Callable:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"vmap: {name} of a mapped tensor of layout torch.sparse_coo: the entries have different numbers of elements")

    return refuse


class SparseBatch:
    """What mapped sparse tensors have instead of the attributes of strided ones. A base of the class of mapped tensors."""

    _value: Any
    with_value: Callable[[Callable[[Any], Any]], Any]

    layout = sparse_coo
    is_sparse = True

    def sparse_dim(self) -> int:
        """The number of sparse dimensions of an entry."""
        return self._value.sparse_dim() - 1

    def dense_dim(self) -> int:
        """The number of dense dimensions."""
        return self._value.dense_dim()

    def coalesce(self) -> Any:
        """The tensor with sorted, distinct indices."""
        return self.with_value(lambda t: t.coalesce())

    def is_coalesced(self) -> bool:
        """Whether the indices of all entries are known to be sorted and distinct."""
        return self._value.is_coalesced()

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """A strided tensor with the values."""
        return self.with_value(lambda t: t.to_dense(dtype, masked_grad=masked_grad))

    def along_dims(self, function: Callable[[Any, list[int]], Any], dim: Any, keeps: bool = False) -> Any:
        """``function(tensor, dims)`` with dimensions of an entry as those of the batch; None: all of them.

        Args:
            keeps: whether the result has these dimensions. Otherwise it is strided if they are all sparse dimensions.
        """
        ndim = self._value.dim() - 1
        given = range(ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        if wrong := [d for d in given if not -ndim <= d < ndim]:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {wrong[0]})")
        dims = [d % ndim for d in given]
        found = self.with_value(lambda t: function(t, [d + 1 for d in dims]))
        return found if keeps or not set(range(self.sparse_dim())) <= set(dims) else found.to_dense()

    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor itself."""
        if args or kwargs:
            raise NotImplementedError("vmap: to_sparse() of a mapped sparse tensor expects no arguments")
        return self


for _name in ("indices", "values", "_indices", "_values", "_nnz", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"):
    setattr(SparseBatch, _name, _refuse(_name))
