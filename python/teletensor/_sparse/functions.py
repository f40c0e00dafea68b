"""Functions of the modules torch and torch.sparse and methods of Tensor for sparse tensors; the table of their operators."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from . import elementwise, products, reduce, shape, text
from .convert import (
    sparse_mask,
    to_sparse,
    to_sparse_bsc,
    to_sparse_bsr,
    to_sparse_coo,
    to_sparse_csc,
    to_sparse_csr,
)
from .create import (
    _sparse_coo_tensor_unsafe,
    _validate_sparse_compressed_tensor_args,
    _validate_sparse_coo_tensor_args,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    spdiags,
)
from .elementwise import given
from .legacy import new
from .products import mm_reduce, sampled_addmm, smm
from .reduce import sparse_softmax, sparse_sum
from .shape import narrow_copy, resize_as_sparse_, sparse_resize_, sparse_resize_and_clear_
from .tensor import SparseTensor, not_implemented

_LOADED = (elementwise, products, reduce, shape, text)  # the files that register operators
spmm = dsmm = _C.torch.mm

__all__ = [
    "SparseTensor", "_sparse_coo_tensor_unsafe", "_validate_sparse_compressed_tensor_args", "_validate_sparse_coo_tensor_args", "dsmm",
    "hsmm", "hspmm", "narrow_copy", "resize_as_sparse_", "sampled_addmm", "smm", "sparse_bsc_tensor", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "sparse_mask", "sparse_resize_",
    "sparse_resize_and_clear_", "spdiags", "spmm", "sspaddmm", "to_sparse", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo",
    "to_sparse_csc", "to_sparse_csr",
]  # fmt: skip


def hspmm(mat1: SparseTensor, mat2: Tensor, *, out: Tensor | None = None) -> SparseTensor:
    """The product of a sparse_coo and a strided matrix, with one sparse dimension: the rows."""
    return given(products.hspmm(mat1, mat2), None if out is None else [out])


def hsmm(input: SparseTensor, mat2: Tensor) -> SparseTensor:
    """hspmm()."""
    return products.hspmm(input, mat2)


def sspaddmm(*args: Any, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None, **named: Any) -> SparseTensor:
    """beta input + alpha mat1 mat2; input and mat1 are of layout sparse_coo, and the result is uncoalesced."""
    values = list(args)
    if values and not isinstance(values[0], Tensor):  # PyTorch's older order
        beta = values.pop(0)
        if len(values) == 4:
            alpha = values.pop(1)
    for name in ("input", "mat1", "mat2")[len(values) :]:
        if name not in named:
            raise TypeError(f"sspaddmm() missing 1 required positional argument: '{name}'")
        values.append(named.pop(name))
    if named or len(values) != 3:
        raise TypeError(f"sspaddmm() expected input, mat1 and mat2, got {len(values)} tensors and {sorted(named)}")
    if not isinstance(values[0], SparseTensor) or not isinstance(values[1], SparseTensor):
        raise RuntimeError("sspaddmm: expected sparse tensors as input and mat1, and a strided one as mat2")
    return given(products.sspaddmm(*values, beta, alpha), None if out is None else [out])


sspaddmm.__overloads__ = (  # type: ignore[attr-defined]
    "input, mat1, mat2, *, beta=1, alpha=1, out=None", "beta, input, alpha, mat1, mat2", "beta, input, mat1, mat2",
)  # fmt: skip
saddmm = sspaddmm


def native_norm(input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of a sparse_coo tensor."""
    if not isinstance(input, SparseTensor) or not input.is_sparse:
        raise not_implemented("native_norm", input) if isinstance(input, SparseTensor) else NotImplementedError(
            f"Could not run 'aten::native_norm' with arguments from the '{input.device.type.upper()}' backend: expected a sparse tensor"
        )
    return input.norm(p, dim, keepdim, dtype)


def _copies(name: str):
    def copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}_copy(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        copied = getattr(input, name)().clone()
        return copied if out is None else out.resize_(copied.shape).copy_(copied)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"A copy of Tensor.{name}()."
    return copy


indices_copy, values_copy, crow_indices_copy, col_indices_copy, ccol_indices_copy, row_indices_copy = map(
    _copies, ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices")
)


# -- torch.sparse


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, at least one of which is sparse; its gradient has the indices of the sparse one.

    Args:
        reduce: "sum", "mean", "amax" or "amin" of the products of each row, for mat1 of layout sparse_csr.
    """
    if reduce is not None:
        return mm_reduce(mat1, mat2, reduce)  # type: ignore[arg-type]
    if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        return products.mm(*products.lowered([mat1, mat2]))
    return _C.torch.mm(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta mat + alpha mat1 mat2; the gradient of a sparse matrix has its indices."""
    beta, alpha = (1 if factor == 1 else factor for factor in (beta, alpha))  # fractions are no factors of integers
    if any(isinstance(t, SparseTensor) for t in (mat, mat1, mat2)):
        if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
            raise RuntimeError("[sparse.addmm] expected a sparse tensor as mat1 or mat2")
        return products.addmm(*products.lowered([mat, mat1, mat2]), beta, alpha)
    return _C.torch.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:  # noqa: A001 - PyTorch's name
    """The sum of a sparse_coo tensor over dimensions: sparse_coo, unless all sparse dimensions are among them."""
    if hasattr(input, "along_dims"):  # mapped by vmap
        full = dim is None and not (input.is_floating_point() or input.is_complex())
        return input.along_dims(lambda t, dims: sum(t, dims, _C.int64 if full and dtype is None else dtype), dim)
    if not isinstance(input, SparseTensor):
        raise NotImplementedError(f"Could not run 'aten::_sparse_sum' with arguments from the '{input.device.type.upper()}' backend.")
    return sparse_sum(input, dim, dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """softmax over the stored elements; absent ones count as minus infinity."""
    if hasattr(input, "along_dims"):
        return input.along_dims(lambda t, dims: softmax(t, dims[0], dtype=dtype), dim, keeps=True)
    return sparse_softmax("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of softmax(), which does not underflow."""
    if hasattr(input, "along_dims"):
        return input.along_dims(lambda t, dims: log_softmax(t, dims[0], dtype=dtype), dim, keeps=True)
    return sparse_softmax("log_softmax", input, dim, dtype)

SparseTensor.new = new
