"""Operators on the elements of sparse tensors: unary ones that map 0 to 0, sums, products and quotients."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import broadcast_shapes, result_type
from .._layouts import sparse_csr
from .convert import (
    batch_dim,
    block_of,
    blocks_of,
    coalesce,
    compressed_to_coo,
    coo_to_compressed,
    entries_coo,
    from_entries,
    in_layout,
    sparse_sizes,
)  # fmt: skip
from .in_place import become
from .tensor import BLOCKS, SparseTensor, coo, handlers, hooks, layout_name, like, not_implemented

ops, torch = _C.ops, _C.torch

# Operators that map 0 to 0; of sparse_coo, PyTorch coalesces first.
ZERO_PRESERVING = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num rad2deg relu round "
    "sgn sign signbit sin sinh sqrt tan tanh tanhshrink trunc"
).split()
# Operators that are linear, so that uncoalesced values need not be added first.
LINEAR = "neg conj conj_physical positive".split()
# Those of ZERO_PRESERVING that PyTorch has for sparse_coo only, and those that it has for compressed layouts only.
ONLY_COO = frozenset(("nan_to_num", "square", "tanhshrink"))
ONLY_COMPRESSED = frozenset(("angle",))


def call(name: str, arguments: list) -> Any:
    """Calls an operator of the engine with a value for each of its parameters."""
    parameters = _C._declaration(name)[0]
    count = sum(not only for _, only, *_ in parameters)
    keywords = dict(zip((p[0] for p in parameters[count:]), arguments[count:]))
    return getattr(ops, name)(*arguments[:count], **keywords)


def writes(name: str, into: list) -> SparseTensor:
    """The sparse tensor that receives the result of an operator. Raises PyTorch's errors for others."""
    target = into[0]
    if not isinstance(target, SparseTensor):
        raise RuntimeError(f"[{name}] expected a sparse tensor as out, got a strided one")
    return target


def given(result: SparseTensor, into: list | None) -> SparseTensor:
    """The result, or the tensor that receives it."""
    if into is None:
        return result
    target = into[0]
    if result is target:
        return target
    if not isinstance(target, SparseTensor):
        raise RuntimeError("[out] expected a sparse tensor, got a strided one")
    if target._layout != result._layout:
        raise RuntimeError(f"[out] expected a tensor of layout {layout_name(result)}, got {layout_name(target)}")
    if target.dtype is not result.dtype:
        if result.is_floating_point() > target.is_floating_point() or result.is_complex() > target.is_complex():
            raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
        result = result.to(target.dtype)
    return become(target, result)


def _unary(name: str, coalesces: bool):
    def handle(arguments: list, into: list | None) -> Any:
        tensor, *rest = arguments
        if not isinstance(tensor, SparseTensor):
            raise RuntimeError(f"[{name}] expected a sparse tensor as input, as out is")
        if name in (ONLY_COMPRESSED if tensor.is_sparse else ONLY_COO):
            raise not_implemented(name, tensor)
        in_place = into is not None and into[0] is tensor
        if tensor.is_sparse and coalesces and not tensor._coalesced:
            if in_place:
                raise RuntimeError(f"{name}_ requires coalesced input")
            tensor = coalesce(tensor)
        if in_place and not (tensor.requires_grad and _C.is_grad_enabled()):
            values = call(name, [tensor._elements, *rest])
            if values.dtype is not tensor.dtype:
                raise RuntimeError(f"result type {values.dtype} can't be cast to the desired output type {tensor.dtype}")
            tensor._elements.copy_(values)
            return tensor
        return given(like(tensor, call(name, [tensor._elements, *rest])), into)

    return handle


def _pow(arguments: list, into: list | None) -> Any:
    tensor, exponent = arguments
    if not isinstance(tensor, SparseTensor) or isinstance(exponent, Tensor) or not tensor.is_sparse or into is not None:
        raise not_implemented("pow", tensor if isinstance(tensor, SparseTensor) else exponent)
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    tensor = coalesce(tensor)
    return like(tensor, call("pow", [tensor._elements, exponent]))


def _float_power(arguments: list, into: list | None) -> Any:
    tensor, exponent = arguments
    wide = _C.complex128 if isinstance(exponent, complex) or (isinstance(tensor, Tensor) and tensor.is_complex()) else _C.float64
    return _pow([tensor.to(wide) if isinstance(tensor, SparseTensor) else tensor, exponent], into)


def _square(arguments: list, into: list | None) -> Any:
    return _pow([arguments[0], 2], into)


# -- sums


def _scaled(values: Tensor, alpha: Any) -> Tensor:
    return values if isinstance(alpha, (int, float)) and alpha == 1 and not isinstance(alpha, bool) else values * alpha


def _union(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    """a + alpha b, of sparse_coo."""
    if a.shape != b.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}")
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but got {a.sparse_dim()} and {b.sparse_dim()}"
        )
    kind = result_type(a._elements, b._elements)
    first, second = a._elements.to(kind), _scaled(b._elements.to(kind), alpha)
    source = a._dense_source or b._dense_source
    if a._coo is b._coo:
        return coo(a._coo, first + second, a.shape, a._coalesced, source)
    if not (a._coalesced and b._coalesced) or a.sparse_dim() == 0 or first.numel() + second.numel() == 0:
        made = coo(torch.cat([a._coo, b._coo], 1), torch.cat([first, second]), a.shape, False, source)
        return coalesce(made) if a._coalesced and b._coalesced else made
    indices, at_first, at_second = ops.sparse_union(a._coo, b._coo, sparse_sizes(a))
    zeros = torch.zeros((indices.shape[1], *first.shape[1:]), dtype=kind, device=a.device)
    values = zeros.index_add(0, at_first, first).index_add(0, at_second, second)
    return coo(indices, values, a.shape, True, source)


def unmasked(name: str, *tensors: Any) -> None:
    """Refuses an operator whose gradient PyTorch computes for all elements, for values that to_sparse() selected."""
    if _C.is_grad_enabled():
        for t in tensors:
            if isinstance(t, SparseTensor) and t._dense_source and t.requires_grad:
                raise NotImplementedError(
                    f"[{name}] the gradient of a strided tensor through to_sparse() and {name} has values where the tensor is zero, which "
                    "is not supported: use the function of torch.sparse, or detach the tensor first"
                )


def _add_dense(dense: Tensor, tensor: SparseTensor, alpha: Any, into: list | None) -> Tensor:
    """dense + alpha tensor."""
    if tensor.shape != dense.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(dense.shape)} while other has size "
            f"{list(tensor.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )
    if into is not None and isinstance(into[0], SparseTensor):
        raise RuntimeError("[add] expected a strided tensor as out, got a sparse one")
    unmasked("add", tensor)
    if into is not None and into[0] is dense and tensor.is_sparse and tensor.sparse_dim() == 1 and not tensor.requires_grad:
        values = tensor._elements.to(dense.dtype)
        return dense.index_add_(0, tensor._coo[0], _scaled(values, alpha))
    kind = result_type(dense, tensor._elements)
    scattered = _scaled(hooks["to_dense"](tensor).to(kind), alpha)
    if into is None:
        return dense + scattered
    return _C.ops.add(dense, scattered, out=into[0])


def _check_alpha(a: Tensor, b: Tensor, alpha: Any) -> None:
    """Raises an error if alpha is of a kind of number that the sum's dtype does not hold, as for strided tensors."""
    kind = _C.promote_types(a.dtype, b.dtype)
    if isinstance(alpha, bool) and kind is not _C.bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and not kind.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def added(a: Any, b: Any, alpha: Any, into: list | None, name: str = "add") -> Any:
    """a + alpha b, at least one of which is sparse."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        _check_alpha(a, b, alpha)
    if not isinstance(b, SparseTensor):
        if not a.is_sparse and isinstance(b, Tensor) and b.shape == a.shape:
            return _add_dense(b * alpha if alpha != 1 else b, a, 1, into)
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not isinstance(a, SparseTensor):
        if not isinstance(a, Tensor):
            raise RuntimeError(f"{name}: expected a tensor and a sparse tensor, got {type(a).__name__} and a sparse tensor")
        _check_strided_target("add", a, b, into)
        return _add_dense(a, b, alpha, into)
    b = in_layout(b, a, name)
    if a.is_sparse:
        return given(_union(a, b, alpha), into)
    if a._plain is b._plain:
        kind = result_type(a._elements, b._elements)
        return given(like(a, a._elements.to(kind) + _scaled(b._elements.to(kind), alpha)), into)
    if a._layout in BLOCKS or batch_dim(a) or batch_dim(b):
        return given(_compressed_union(a, b, alpha, name), into)
    summed = _union(coalesce(compressed_to_coo(a)), coalesce(compressed_to_coo(b)), alpha)
    return given(coo_to_compressed(summed, a._layout), into)


def _require_same_blocks(name: str, a: SparseTensor, b: SparseTensor) -> None:
    if a.shape != b.shape or blocks_and_batches(a) != blocks_and_batches(b):
        raise RuntimeError(
            f"[{name}] expected tensors of one size with the same batches and blocks, got {list(a.shape)} with {batch_dim(a)} batch "
            f"dimensions and blocks of {block_of(a)}, and {list(b.shape)} with {batch_dim(b)} and {block_of(b)}"
        )


def blocks_and_batches(tensor: SparseTensor) -> tuple:
    """What two compressed tensors of one layout and size must share: block size, batch and dense dimensions."""
    return block_of(tensor), batch_dim(tensor), tensor.dense_dim()


def _compressed_union(a: SparseTensor, b: SparseTensor, alpha: Any, name: str) -> SparseTensor:
    """a + alpha b, of a compressed layout with batches or blocks."""
    _require_same_blocks(name, a, b)
    return from_entries(_union(coalesce(entries_coo(a)), coalesce(entries_coo(b)), alpha), a, name)


def _add(arguments: list, into: list | None) -> Any:
    return added(arguments[0], arguments[1], arguments[2], into)


def _sub(arguments: list, into: list | None) -> Any:
    return added(arguments[0], arguments[1], -arguments[2], into, "sub")


# -- products and quotients


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor) or (value.dim() == 0 and not isinstance(value, SparseTensor))


def both(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The values of a, at the indices that both have; both of sparse_coo."""
    a, b = coalesce(a), coalesce(b)
    first, _ = ops.sparse_intersection(a._coo, b._coo, sparse_sizes(a))
    return coo(a._coo.index_select(1, first), a._elements.index_select(0, first), a.shape, True, a._dense_source)


def _intersection(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """a b, of sparse_coo."""
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"mul operands have incompatible sizes or sparse dimensions: {list(a.shape)} and {list(b.shape)}")
    source = a._dense_source or b._dense_source
    a, b = coalesce(a), coalesce(b)
    if a._coo is b._coo:
        return coo(a._coo, a._elements * b._elements, a.shape, True, source)
    if a.sparse_dim() == 0:
        return coo(a._coo, a._elements * b._elements, a.shape, True, source)
    first, second = ops.sparse_intersection(a._coo, b._coo, sparse_sizes(a))
    values = a._elements.index_select(0, first) * b._elements.index_select(0, second)
    return coo(a._coo.index_select(1, first), values, a.shape, True, source)


def broadcast_coo(tensor: SparseTensor, size: tuple[int, ...]) -> SparseTensor:
    """The tensor with further sparse dimensions before the first one, and copies along sparse and dense dimensions of size 1."""
    added_dims = len(size) - tensor.dim()
    sparse, count = added_dims + tensor.sparse_dim(), tensor._nnz()
    rows = [torch.zeros(count, dtype=_C.int64, device=tensor.device)] * added_dims + list(tensor._coo.unbind(0))
    values = tensor._elements.expand(count, *size[sparse:])
    grown = [d for d, n in enumerate([1] * added_dims + list(tensor.shape[: tensor.sparse_dim()])) if n != size[d]]
    if grown:
        copies = math.prod(size[d] for d in grown)
        rows = [row.repeat(copies) for row in rows]
        values = values.repeat(copies, *[1] * (values.dim() - 1))
        place = torch.arange(copies, device=tensor.device).repeat_interleave(count)
        for d in reversed(grown):
            rows[d], place = place % size[d], place // size[d]
    keeps_order = grown == list(range(len(grown)))
    return coo(torch.stack(rows) if rows else tensor._coo, values, size, tensor._coalesced and keeps_order, tensor._dense_source)


def _times_dense(tensor: SparseTensor, dense: Tensor) -> SparseTensor:
    """The product with a strided tensor; sparse_coo is broadcast to the size of both."""
    size = tuple(broadcast_shapes(tuple(tensor.shape), tuple(dense.shape)))
    if size != tuple(tensor.shape):
        if not tensor.is_sparse:
            raise NotImplementedError(
                f"[mul] expected a strided tensor that can be broadcast to {list(tensor.shape)}, got {list(dense.shape)}: a tensor of "
                f"layout {tensor.layout} is not broadcast"
            )
        tensor = broadcast_coo(coalesce(tensor), size)
    dense = dense.broadcast_to(size)
    if not tensor.is_sparse:
        return like(tensor, tensor._elements * blocks_of(dense, tensor))
    if tensor.sparse_dim() == 0:
        return like(tensor, tensor._elements * dense)
    return like(tensor, tensor._elements * ops.sparse_gather(dense, tensor._coo))


def _check_strided_target(name: str, a: Tensor, b: Tensor, into: list | None) -> None:
    """Raises RuntimeError if a strided tensor that receives the result cannot have its dtype."""
    if into is not None and into[0] is a and not _C.can_cast(kind := result_type(a, b._elements), a.dtype):
        raise RuntimeError(f"Can't convert result type {kind} to output {a.dtype} in {name} operation")


def _mul(arguments: list, into: list | None) -> Any:
    a, b = arguments
    if not isinstance(a, SparseTensor):
        if isinstance(a, Tensor):
            _check_strided_target("mul", a, b, into)
        if into is not None and into[0] is a:  # a strided tensor that receives the product
            return a.copy_(hooks["to_dense"](_mul([b, a], None)))
        a, b = b, a
    if _is_number(b):
        records = _C.is_grad_enabled() and (a.requires_grad or (isinstance(b, Tensor) and b.requires_grad))
        if into is not None and into[0] is a and not records:
            a._elements.mul_(b)
            return a
        return given(like(a, a._elements * b), into)
    if not isinstance(b, SparseTensor):
        return given(_times_dense(a, b), into)
    a, b = (in_layout(a, b, "mul"), b) if a.is_sparse else (a, in_layout(b, a, "mul"))
    if a.is_sparse:
        return given(_intersection(a, b), into)
    if a._plain is b._plain:
        return given(like(a, a._elements * b._elements), into)
    if a._layout != sparse_csr or batch_dim(a) or batch_dim(b):
        _require_same_blocks("mul", a, b)
        return given(from_entries(_intersection(entries_coo(a), entries_coo(b)), a, "mul"), into)
    product = _intersection(coalesce(compressed_to_coo(a)), coalesce(compressed_to_coo(b)))
    return given(coo_to_compressed(product, sparse_csr), into)


def _div(arguments: list, into: list | None) -> Any:
    tensor, divisor, rounding = (*arguments, None)[:3]
    if not isinstance(tensor, SparseTensor) or not _is_number(divisor):
        shape = list(divisor.shape) if isinstance(divisor, Tensor) else []
        raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)")
    if not tensor.is_sparse and rounding is not None:
        raise not_implemented("div", tensor)
    if rounding is not None:
        if into is not None and not tensor._coalesced:
            raise RuntimeError("div: rounding mode requires a coalesced tensor for in-place division")
        tensor = coalesce(tensor)
    return given(like(tensor, torch.div(tensor._elements, divisor, rounding_mode=rounding)), into)


def _floor_divide(arguments: list, into: list | None) -> Any:
    if isinstance(arguments[0], SparseTensor) and not arguments[0].is_sparse:
        raise not_implemented("floor_divide", arguments[0])
    return _div([*arguments, "floor"], into)


for _name in (*ZERO_PRESERVING, *ONLY_COMPRESSED):
    handlers[_name] = _unary(_name, True)
for _name in LINEAR:
    if hasattr(ops, _name):
        handlers[_name] = _unary(_name, False)
handlers.update(
    pow=_pow, float_power=_float_power,
    square=_square, add=_add, sub=_sub, mul=_mul, div=_div, true_divide=_div, floor_divide=_floor_divide,
)  # fmt: skip
hooks["both"] = both
