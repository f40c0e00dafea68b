"""Matrix products with sparse tensors, sampled products, triangular solves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .convert import batch_dim, coalesce, compressed_to, compressed_to_coo, rows_of
from .elementwise import added, given, unmasked
from .tensor import BLOCKS, SparseTensor, compressed, coo, handlers, layout_name, like, not_implemented

ops, torch = _C.ops, _C.torch


def _check_matrix(name: str, tensor: Tensor, place: str) -> None:
    if isinstance(tensor, SparseTensor) and tensor.dense_dim():
        raise RuntimeError(f"{name}: expected a tensor without dense dimensions as {place}, got {tensor.dense_dim()} of them")


def _check(name: str, a: Tensor, b: Tensor) -> None:
    """Raises RuntimeError unless a b is a product of matrices of one dtype."""
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(f"{name}: Expected 2D matrices, got tensors of {a.dim()} and {b.dim()} dimensions")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    _check_matrix(name, a, "mat1")
    _check_matrix(name, b, "mat2")


def _csr(tensor: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """The compressed row indices, column indices and values of a matrix of layout sparse_coo or sparse_csr."""
    if tensor._layout == sparse_coo:
        tensor = coalesce(tensor)
        return rows_of(tensor), tensor._coo[1], tensor._elements
    return tensor._compressed, tensor._plain, tensor._elements


def _as_rows(tensor: SparseTensor) -> SparseTensor:
    """A matrix of any layout as sparse_csr or as a coalesced sparse_coo one."""
    if tensor._layout == sparse_csr or tensor._layout == sparse_coo:
        return tensor if tensor._layout == sparse_csr else coalesce(tensor)
    if tensor._layout == sparse_csc:
        return compressed_to(tensor, sparse_csr, None)
    return coalesce(compressed_to_coo(tensor))


def _sparse_dense(a: SparseTensor, x: Tensor) -> Tensor:
    """a x, [*b, n, m] times [*b, m, k]; batches only of compressed layouts."""
    kind = a._layout
    if kind == sparse_coo and a._flipped is not None:
        base = a._flipped
        return ops.sparse_csr_mm_transposed(rows_of(base), base._coo[1], a._elements, x, a.shape[0])
    if kind == sparse_csc:
        return ops.sparse_csr_mm_transposed(a._compressed, a._plain, a._elements, x, a.shape[-2])
    if kind in BLOCKS:
        a = a if kind == sparse_bsr else compressed_to(a, sparse_bsr, None)
        return ops.sparse_bsr_mm(a._compressed, a._plain, a._elements, x)
    return ops.sparse_csr_mm(*_csr(a), x)


def _dense_sparse(x: Tensor, a: SparseTensor) -> Tensor:
    """x a, as the transpose of the product of the transposes."""
    if a._layout == sparse_coo:
        if a._flipped is None:
            a = coalesce(a)
            return ops.sparse_csr_mm_transposed(rows_of(a), a._coo[1], a._elements, x.mT, a.shape[1]).mT
        base = like(a._flipped, a._elements)
        return _sparse_dense(base, x.mT).mT
    return _sparse_dense(transpose_matrix(a), x.mT).mT


def transpose_matrix(a: SparseTensor) -> SparseTensor:
    """A matrix, or batches of matrices, with rows and columns exchanged; no values are copied."""
    if a.is_sparse:
        size = (a.shape[1], a.shape[0], *a.shape[2:])
        made = coo(a._coo.flip(0), a._elements, size, False, a._dense_source)
        if a._coalesced and a.sparse_dim() == 2:
            made._flipped = a
        return made
    b = batch_dim(a)
    other = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}[a._layout]
    values = a._elements.transpose(b + 1, b + 2) if a._layout in BLOCKS else a._elements
    size = (*a.shape[:b], a.shape[b + 1], a.shape[b], *a.shape[b + 2 :])
    return compressed(other, a._compressed, a._plain, values, size, a._dense_source)


def _sparse_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """a b, of sparse_coo if both are, else of sparse_csr."""
    first, second = _as_rows(a), _as_rows(b)
    outer, plain, values = ops.sparse_csr_matmul(*_csr(first), *_csr(second), b.shape[1])
    size, source = (a.shape[0], b.shape[1]), a._dense_source or b._dense_source
    if a.is_sparse and b.is_sparse:
        rows = ops.sparse_expand(outer, plain.shape[0])
        made = coo(torch.stack([rows, plain]).to(_C.int64), values, size, True, source)
        made._rows, made._rows_version = outer.to(_C.int64), made._coo._version
        return made
    return compressed(sparse_csr, outer, plain, values, size, source)


def lowered(values: list) -> list:
    """The arguments of a product, as autocast casts those on its device: floating point other than float64 to its dtype."""
    kinds = {device: kind for device in ("cpu", "cuda") if (kind := _C.autocast_dtype(device)) is not None}
    if not kinds:
        return values
    casts = lambda t: isinstance(t, Tensor) and t.is_floating_point() and t.dtype is not _C.float64 and t.device.type in kinds  # noqa: E731
    return [t.to(kinds[t.device.type]) if casts(t) else t for t in values]


def _lowers(handler: Callable[[list, list | None], Tensor]) -> Callable[[list, list | None], Tensor]:
    """The handler of an operator that autocast lowers, except where it writes to a tensor."""
    return lambda arguments, into: handler(lowered(arguments) if into is None else arguments, into)


def mm(a: Tensor, b: Tensor, name: str = "mm") -> Tensor:
    """The product of two matrices, at least one of which is sparse: sparse if both are."""
    _check(name, a, b)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return _sparse_sparse(a, b)
    return _sparse_dense(a, b) if isinstance(a, SparseTensor) else _dense_sparse(a, b)


def _received(result: Tensor, into: list | None) -> Tensor:
    if into is None:
        return result
    if isinstance(into[0], SparseTensor) != isinstance(result, SparseTensor):
        raise RuntimeError(f"[out] expected a tensor of layout {result.layout}, got one of {into[0].layout}")
    if isinstance(result, SparseTensor):
        return given(result, into)
    if into[0].shape != result.shape and into[0].numel() == 0:
        into[0].resize_(result.shape)
    if into[0].shape != result.shape:
        raise RuntimeError(f"[out] expected a tensor of size {list(result.shape)}, got {list(into[0].shape)}")
    return into[0].copy_(result)


def _mm(arguments: list, into: list | None) -> Tensor:
    a, b = arguments[:2]
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        unmasked("mm", a, b)
    return _received(mm(a, b), into)


def _mv(arguments: list, into: list | None) -> Tensor:
    a, x = arguments
    if isinstance(x, SparseTensor):
        if isinstance(a, SparseTensor) or a.dim() != 2:
            raise not_implemented("mv", x)
        return _vector_matrix("mv", x, a.mT, into)
    if a.dim() != 2 or x.dim() != 1:
        raise RuntimeError(f"mv: Expected a matrix and a vector, got tensors of {a.dim()} and {x.dim()} dimensions")
    if a.shape[1] != x.shape[0]:
        raise RuntimeError(f"mv: Expected self.size(-1) == vec.size(-1), got {a.shape[1]} and {x.shape[0]}")
    unmasked("mv", a)
    if into is None and a._layout == sparse_coo:  # for which PyTorch's mv() calls mm(), which autocast lowers
        a, x = lowered([a, x])
    return _received(mm(a, x.unsqueeze(1), "mv").squeeze(1), into)


def _vector_matrix(name: str, x: SparseTensor, a: Tensor, into: list | None) -> Tensor:
    """x a of a sparse_coo vector and a strided matrix."""
    if x.dim() != 1 or not x.is_sparse:
        raise not_implemented(name, x)
    unmasked(name, x)
    row = coo(torch.stack([torch.zeros_like(x._coo[0]), x._coo[0]]), x._elements, (1, x.shape[0]), x._coalesced, x._dense_source)
    return _received(mm(row, a, name).squeeze(0), into)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Products of a batch of sparse matrices and strided ones."""
    if a.dim() != 3 or b.dim() != 3:
        raise RuntimeError(f"batch{1 if a.dim() != 3 else 2} must be a 3D tensor")
    if isinstance(b, SparseTensor) and isinstance(a, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if isinstance(b, SparseTensor):
        raise not_implemented("bmm", b)
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"bmm: expected sizes that fit, got {list(a.shape)} and {list(b.shape)}")
    _check_matrix("bmm", a, "mat1")
    count, n, m = a.shape
    if not a.is_sparse:
        return _sparse_dense(a, b)
    if a.sparse_dim() != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 sparse dimensions, got {a.sparse_dim()}")
    a = coalesce(a)
    batch, row, column = a._coo
    outer = ops.sparse_compress(batch * n + row, count * n)
    flat = ops.sparse_csr_mm(outer, batch * m + column, a._elements, b.reshape(count * m, b.shape[2]))
    return flat.reshape(count, n, b.shape[2])


def _bmm(arguments: list, into: list | None) -> Tensor:
    unmasked("bmm", *arguments[:2])
    return _received(bmm(*arguments[:2]), into)


def _matmul(arguments: list, into: list | None) -> Tensor:
    a, b = arguments
    if a.dim() == 1 and b.dim() == 2 and not isinstance(a, SparseTensor):
        return _mv([transpose_matrix(b), a], into)
    if a.dim() == 1 and b.dim() == 2 and not isinstance(b, SparseTensor):
        return _vector_matrix("matmul", a, b, into)
    if a.dim() == 2 and b.dim() == 1:
        return _mv([a, b], into)
    if a.dim() == 2 and b.dim() == 2:
        return _mm([a, b], into)
    if a.dim() == 3 and b.dim() == 3 and a.shape[0] == b.shape[0]:
        return _bmm([a, b], into)
    if a.dim() > 2 and b.dim() == 2 and not isinstance(a, SparseTensor):
        unmasked("matmul", b)
        return _received(mm(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1]), into)
    raise not_implemented("matmul", a if isinstance(a, SparseTensor) else b)


def addmm(input: Tensor, a: Tensor, b: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta input + alpha a b."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise RuntimeError(f"addmm: expected a sparse tensor as mat1 or mat2, got an input of layout {input.layout} and strided matrices")
    product = mm(a, b, "addmm")
    if isinstance(product, SparseTensor) and not isinstance(input, SparseTensor) and not product.is_sparse:
        product = product.to_dense()
    if isinstance(input, SparseTensor) or isinstance(product, SparseTensor):
        if isinstance(input, SparseTensor) and isinstance(product, SparseTensor):
            if input.shape != product.shape:
                raise RuntimeError("addmm: expand is unsupported for Sparse tensors")
            return added(input * beta if beta != 1 else input, product, alpha, None)
        raise RuntimeError(
            f"addmm: expected tensors whose layouts fit, got {layout_name(input)} and a product of {layout_name(a)} and {layout_name(b)}"
        )
    if product.dtype is not input.dtype:
        raise RuntimeError(f"addmm: expected input to have dtype {product.dtype}, got {input.dtype}")
    if not product.is_floating_point() and not product.is_complex():
        for what, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, (float, complex)):
                raise RuntimeError(f"For integral input tensors, argument {what} must not be a floating point number.")
    input = input.broadcast_to(product.shape)
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else scaled + (input if beta == 1 else input * beta)


def _addmm(arguments: list, into: list | None) -> Tensor:
    input, a, b, beta, alpha = arguments
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        unmasked("addmm", a, b)
    return _received(addmm(input, a, b, beta, alpha), into)


def _addmv(arguments: list, into: list | None) -> Tensor:
    input, a, x, *rest = arguments
    if not isinstance(a, SparseTensor) or a.is_sparse:
        raise not_implemented("addmv", a if isinstance(a, SparseTensor) else x)
    unmasked("addmv", a)
    result = addmm(input.broadcast_to((a.shape[0],)).unsqueeze(1), a, x.unsqueeze(1), *rest)
    return _received(result.squeeze(1), into)


def _linear(arguments: list, into: list | None) -> Tensor:
    x, weight, bias = arguments
    if x.dim() == 1 and weight.dim() == 2 and not isinstance(weight, SparseTensor) and not isinstance(bias, SparseTensor):
        product = _vector_matrix("linear", x, weight.mT, None)
        return _received(product if bias is None else product + bias, into)
    if isinstance(x, SparseTensor) and x.dim() == 2 and weight.dim() == 1 and bias is None and not isinstance(weight, SparseTensor):
        return _received(torch.mv(x, weight), into)
    if isinstance(x, SparseTensor) and not isinstance(weight, SparseTensor) and not isinstance(bias, SparseTensor) and x.dim() == 2:
        unmasked("linear", x)
        product = mm(x, weight.mT, "linear")
        return _received(product if bias is None else product + bias, into)
    if isinstance(x, SparseTensor) and isinstance(weight, SparseTensor) and x.dim() == weight.dim() == 2:
        if bias is not None and x.layout == sparse_coo:
            raise RuntimeError(
                "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got 'mat1' with "
                f"layout {layout_name(x)} and 'mat2' with layout {layout_name(weight)}"
            )
        product = mm(x, weight.t(), "linear")
        return _received(product if bias is None else bias.expand(product.shape) + product, into)
    if not isinstance(weight, SparseTensor) or isinstance(x, SparseTensor) or isinstance(bias, SparseTensor):
        raise not_implemented("linear", next(t for t in (x, weight, bias) if isinstance(t, SparseTensor)))
    if weight.dim() != 2:
        raise RuntimeError(f"[linear] expected a matrix as weight, got a tensor of {weight.dim()} dimensions")
    unmasked("linear", weight)
    rows = x.reshape(-1, x.shape[-1])
    if rows.shape[1] != weight.shape[1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows.shape[0]}x{rows.shape[1]} and {weight.shape[1]}x{weight.shape[0]})"
        )
    _check("linear", weight, rows.mT)
    product = _sparse_dense(weight, rows.mT).mT.reshape(*x.shape[:-1], weight.shape[0])
    return _received(product if bias is None else product + bias, into)


# -- products whose result is sparse though one argument is strided


def _product_rows(a: SparseTensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The indices of the rows of a with elements, and these rows of a x."""
    a = coalesce(a)
    rows, _ = ops.sparse_unique(a._coo[:1], [a.shape[0]])
    return rows, _sparse_dense(a, x).index_select(0, rows[0])


def _only_coo(name: str, a: Any) -> None:
    if not isinstance(a, SparseTensor) or not a.is_sparse:
        if isinstance(a, SparseTensor):
            raise not_implemented(name, a)
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{a.device.type.upper()}' backend.")


def hspmm(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    """The product of a sparse_coo and a strided matrix, with one sparse dimension: the rows."""
    _only_coo("hspmm", mat1)
    _check("hspmm", mat1, mat2)
    rows, values = _product_rows(mat1, mat2)
    return coo(rows, values, (mat1.shape[0], mat2.shape[1]), False)


def smm(input: SparseTensor, mat2: Tensor) -> SparseTensor:
    """The product of a sparse_coo and a strided matrix, as sparse_coo."""
    _only_coo("smm", input)
    _check("smm", input, mat2)
    rows, values = _product_rows(input, mat2)
    k = mat2.shape[1]
    columns = torch.arange(k, device=mat2.device).repeat(rows.shape[1])
    return coo(torch.stack([rows[0].repeat_interleave(k), columns]), values.reshape(-1), (input.shape[0], k), False)


def sspaddmm(input: SparseTensor, mat1: SparseTensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> SparseTensor:
    """beta input + alpha mat1 mat2, as sparse_coo; input and mat1 are."""
    _only_coo("sspaddmm", input)
    product = smm(mat1, mat2)
    if input.shape != product.shape:
        raise RuntimeError(f"sspaddmm: expected an input of size {list(product.shape)}, got {list(input.shape)}")
    values = torch.cat([input._elements * beta, product._elements * alpha])
    return coo(torch.cat([input._coo, product._coo], 1), values, input.shape, False)


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: SparseTensor | None = None
) -> SparseTensor:
    """beta input + alpha mat1 mat2, only at the indices of input, of layout sparse_csr."""
    if not isinstance(input, SparseTensor) or input._layout != sparse_csr:
        if isinstance(input, SparseTensor):
            raise not_implemented("sparse_sampled_addmm", input)
        raise RuntimeError("sampled_addmm: Expected self to have sparse csr layout, but got Strided")
    for place, mat in (("mat1", mat1), ("mat2", mat2)):
        if isinstance(mat, SparseTensor):
            raise RuntimeError(f"sampled_addmm: Expected {place} to have strided layout, but got {layout_name(mat)}")
        if mat.dtype is not input.dtype:
            raise RuntimeError(f"sampled_addmm: Expected {place} and self to have the same dtype, but got {mat.dtype} and {input.dtype}")
    if not mat1.shape[:-2] == mat2.shape[:-2] == input.shape[:-2]:
        raise RuntimeError("sampled_addmm: Expected mat1, mat2 and self to have the same batch size")
    if mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[-2]}x{mat1.shape[-1]} and {mat2.shape[-2]}x"
            f"{mat2.shape[-1]})"
        )
    if (input.shape[-2], input.shape[-1]) != (mat1.shape[-2], mat2.shape[-1]):
        raise RuntimeError(
            f"sampled_addmm: self has size {list(input.shape)}, but mat1 @ mat2 has size {[mat1.shape[-2], mat2.shape[-1]]}"
        )
    values = ops.sparse_csr_sddmm(input._compressed, input._plain, mat1, mat2.mT)
    scaled = values if alpha == 1 else values * alpha
    result = like(input, scaled if beta == 0 else scaled + (input._elements if beta == 1 else input._elements * beta))
    return given(result, None if out is None else [out])


def mm_reduce(a: SparseTensor, x: Tensor, reduce: str) -> Tensor:
    """torch.sparse.mm with a reduction of the products of each row: sum, mean, amax or amin. a is of layout sparse_csr."""
    if not isinstance(a, SparseTensor) or a._layout != sparse_csr:
        kind = a if isinstance(a, SparseTensor) else x
        if isinstance(kind, SparseTensor):
            raise not_implemented("_sparse_mm_reduce_impl", kind)
        raise RuntimeError("sparse_mm_reduce: expected a tensor of layout sparse_csr as mat1")
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"sparse_mm_reduce: reduce type of {reduce} has not been enabled.")
    _check("mm", a, x)
    if reduce == "mean" and not x.is_floating_point() and not x.is_complex():
        raise NotImplementedError(f'"spmm_reduce_kernel" not implemented for {x.dtype}')
    if reduce in ("sum", "mean"):
        product = _sparse_dense(a, x)
        if reduce == "sum":
            return product
        counts = (a._compressed[1:] - a._compressed[:-1]).clamp_min(1).to(product.dtype)
        return product / counts.unsqueeze(1)
    return ops.sparse_csr_mm_extremum(a._compressed, a._plain, a._elements, x, reduce == "amax")[0]


def _triangular_solve(arguments: list, into: list | None) -> Tensor:
    a, b, upper, *rest = arguments
    transpose, unitriangular = (*rest, False, False)[:2]
    if not isinstance(a, SparseTensor) or a.is_sparse or isinstance(b, SparseTensor) or into is not None:
        raise not_implemented("triangular_solve", a if isinstance(a, SparseTensor) else b)
    if batch_dim(a):
        raise NotImplementedError(f"[triangular_solve] expected a matrix, got {layout_name(a)} of size {list(a.shape)}")
    if a.dim() != 2 or b.dim() != 2 or a.shape[0] != a.shape[1] or a.shape[0] != b.shape[0]:
        raise RuntimeError(f"triangular_solve: expected a square matrix and rows that fit, got {list(a.shape)} and {list(b.shape)}")
    unmasked("triangular_solve", a)
    a = compressed_to(a, sparse_csr, None)
    return ops.sparse_csr_triangular_solve(a._compressed, a._plain, a._elements, b, bool(upper), bool(transpose), bool(unitriangular))


def _addr(arguments: list, into: list | None) -> Tensor:
    """addr(): PyTorch computes it for a sparse input only without the input."""
    input, first, second, beta, alpha = arguments
    if isinstance(first, SparseTensor) or isinstance(second, SparseTensor):
        raise not_implemented("addr", first if isinstance(first, SparseTensor) else second)
    if beta != 0:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    kind = _C.promote_types(_C.promote_types(input.dtype, first.dtype), second.dtype)
    result = torch.outer(first.to(kind), second.to(kind)) * alpha
    if into is None and _C.is_grad_enabled() and input.requires_grad:
        values = input._elements.to(kind)
        result = result - torch.where(torch.zeros_like(values, dtype=_C.bool), values, 0).sum()  # the gradient is 0, not None
    return _received(result, into)


handlers.update(
    addr=_addr,
    mm=_lowers(_mm), matmul=_lowers(_matmul), mv=_mv, bmm=_lowers(_bmm), addmm=_lowers(_addmm), addmv=_addmv,
    linear=_lowers(_linear), triangular_solved=_triangular_solve,
)  # fmt: skip
