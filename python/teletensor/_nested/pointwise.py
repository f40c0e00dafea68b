"""Operators that compute each element of jagged tensors by itself: pointwise ones, conversions, copies, random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .base import not_implemented
from .engine import call, write
from .padding import jagged_of, padded
from .ragged import Ragged, offsets_of
from .tensor import NestedTensor, handlers, wrapped

# Operators of one tensor that compute each element by itself, but are not declared as pointwise.
_ELEMENTWISE = (
    "to_dtype clone detach alias bernoulli nan_to_num poisson standard_gamma gelu celu logit relu6 div clamp float_power round "
    "logaddexp2 ldexp max_other min_other nextafter real mvlgamma frexp"
).split()
_LIKE = (
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like uniform_like normal_like bernoulli_like "
    "exponential_like random_like cauchy_like geometric_like log_normal_like"
).split()


def mismatch(name: str, *tensors: Any) -> RuntimeError:
    """The error for tensors whose sizes do not fit."""
    shapes = " and ".join(str(getattr(t, "_size", None) or tuple(t.shape)) for t in tensors)
    return RuntimeError(f"cannot call binary pointwise function {name} with inputs of shapes {shapes}")


def common(name: str, tensors: Sequence[NestedTensor]) -> NestedTensor:
    """The first tensor, after a check that all have its offsets at the same dimension. Raises RuntimeError otherwise."""
    first = tensors[0]
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError(f"[{name}] expected nested tensors of one layout, got torch.jagged and torch.strided")
    for other in tensors[1:]:
        if other._ragged != first._ragged or other._ragged_idx != first._ragged_idx or other.dim() != first.dim():
            raise mismatch(name, first, other)
    return first


def inner_values(name: str, dense: Tensor, like: NestedTensor) -> Tensor:
    """A dense tensor as one that broadcasts with the values of a jagged tensor.

    It broadcasts to the jagged tensor's sizes: its ragged dimension, if it has one, is 1, and its batch dimension 1 or the
    number of sequences, each of which then repeats its row; or it is a padded tensor of as many rows as the longest sequence has.
    """
    r, extra = like._ragged_idx, like.dim() - dense.dim()
    if extra < 0:
        raise NotImplementedError(f"[{name}] broadcasting a nested tensor with a tensor of more dimensions is not implemented")
    if extra == 0 and dense.shape[r] != 1 and dense.shape[0] == like._ragged.batch and dense.shape[r] == like._ragged.max_seqlen():
        return jagged_of(dense, like._ragged, like._total, r)._elements
    if extra <= r and dense.dim() > 0 and r - extra < dense.dim() and dense.shape[r - extra] != 1:
        raise mismatch(name, like, dense)
    if extra > 0:
        return dense
    if dense.shape[0] == 1:
        return dense.select(0, 0)
    if dense.shape[0] != like._ragged.batch:
        raise mismatch(name, like, dense)
    rows = dense.squeeze(r)
    ragged = like._ragged
    return _C.ops.jagged_expand(rows, ragged.offsets, ragged.lengths, like._total).movedim(0, r - 1)


def unwrapped(name: str, arguments: Any, like: NestedTensor) -> Any:
    """Arguments with values in place of jagged tensors, and dense tensors that broadcast with them."""
    if isinstance(arguments, NestedTensor):
        return arguments._elements
    if isinstance(arguments, Tensor):
        return inner_values(name, arguments, like)
    if isinstance(arguments, (list, tuple)):
        return [unwrapped(name, a, like) for a in arguments]
    return arguments


def given(name: str, result: Any, into: list | None, like: NestedTensor) -> Any:
    """The values as a jagged tensor, or in the tensor that receives the result."""
    if isinstance(result, (list, tuple)):
        if into is not None:
            raise not_implemented(f"{name}.out")
        return type(result)(given(name, r, None, like) for r in result)
    if into is None:
        return like._with(result)
    target = into[0]
    if not isinstance(target, NestedTensor):
        raise RuntimeError(f"[{name}] expected a nested tensor to receive the result, got one that is not nested")
    common(name, [like, target])
    write(name, target._elements, result)
    return target


def _flat(arguments: list) -> list[NestedTensor]:
    found = []
    for a in arguments:
        if getattr(a, "is_nested", False):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found.extend(_flat(list(a)))
    return found


def _pointwise(arguments: list, into: list | None) -> Any:
    name, values = arguments
    nested = _flat(values)
    if not nested:
        raise RuntimeError(f"[{name}] expected a nested argument for a nested tensor that receives the result")
    like = common(name, nested)
    return given(name, call(name, unwrapped(name, values, like)), into, like)


def _elementwise(name: str):
    return lambda arguments, into: _pointwise([name, arguments], into)


def _to_device(arguments: list, into: list | None) -> NestedTensor:
    tensor = arguments[0]
    if into is not None or not isinstance(tensor, NestedTensor):
        raise not_implemented("to_device")
    moved = call("to_device", [tensor._elements, *arguments[1:]])
    return wrapped(moved, tensor._ragged.to(moved.device), tensor._ragged_idx)


def _like(name: str):
    def handle(arguments: list, into: list | None) -> NestedTensor:
        tensor = arguments[0]
        if not isinstance(tensor, NestedTensor):
            raise not_implemented(name)
        made = call(name, [tensor._elements, *arguments[1:]])
        if into is not None:
            return given(name, made, into, tensor)
        return wrapped(made, tensor._ragged.to(made.device), tensor._ragged_idx)

    return handle


def without_holes(tensor: NestedTensor) -> NestedTensor:
    """The tensor, or a copy in which each sequence ends where the next one begins."""
    if tensor._ragged.lengths is None:
        return tensor
    r, ragged = tensor._ragged_idx, tensor._ragged
    ragged.check_within(tensor._total, "contiguous")
    places = [i for start, size in zip(ragged.starts(), ragged.sizes(), strict=True) for i in range(start, start + size)]
    index = _C.tensor(places, dtype=_C.int64, device=tensor.device)
    values = tensor._elements.index_select(r - 1, index)
    return wrapped(values, Ragged(offsets_of(ragged.lengths), sizes=ragged.sizes()), r)


def _contiguous(arguments: list, into: list | None) -> NestedTensor:
    (tensor,) = arguments
    if into is not None:
        raise not_implemented("contiguous.out")
    packed = without_holes(tensor)
    return packed if packed._elements.is_contiguous() else packed._with(packed._elements.contiguous())


def _dropout(arguments: list, into: list | None) -> NestedTensor:
    tensor, p, training = arguments
    return given("dropout", call("dropout", [tensor._elements, p, training]), into, tensor)


def _assign(arguments: list, into: list | None) -> NestedTensor:
    """copy_(): from a tensor of the same offsets, or of the same lengths."""
    source = arguments[1]
    target = into[0] if into is not None else None
    if not isinstance(target, NestedTensor) or not isinstance(source, NestedTensor):
        raise RuntimeError("copy_(): expected a nested tensor to receive a nested tensor")
    if source._ragged != target._ragged:
        sizes = [[tuple(c.shape) for c in t.unbind()] for t in (target, source)]
        if sizes[0] != sizes[1]:
            raise RuntimeError(f"copy_(): expected compatible input and src shapes, but got: {target._size} and {source._size}")
        if target._ragged.lengths is not None:
            for to, values in zip(target.unbind(), source.unbind(), strict=True):
                to.copy_(values)
            return target
        source = without_holes(source)
    elif source._ragged_idx != target._ragged_idx:
        raise RuntimeError(f"copy_(): expected compatible input and src shapes, but got: {target._size} and {source._size}")
    target._elements.copy_(source._elements)
    return target


def _fill(arguments: list, into: list | None) -> NestedTensor:
    tensor, value = arguments
    if into is None:
        return tensor._with(call("fill", [tensor._elements, value]))
    into[0]._elements.fill_(value)
    return into[0]


def _full_like(arguments: list, into: list | None) -> NestedTensor:
    if into is not None and into[0] is arguments[0]:
        return _fill(arguments[:2], into)
    return _like("full_like")(arguments, into)


def _masked_fill(arguments: list, into: list | None) -> NestedTensor:
    tensor, mask, _ = arguments
    if not isinstance(tensor, NestedTensor):
        raise RuntimeError("[masked_fill] expected a nested tensor for a nested mask, got one that is not nested")
    if isinstance(mask, Tensor) and not isinstance(mask, NestedTensor) and mask.dtype is not _C.bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    return _pointwise(["masked_fill", arguments], into)


def _where(arguments: list, into: list | None) -> NestedTensor:
    return _pointwise(["where", arguments], into)


def _index_put(arguments: list, into: list | None) -> NestedTensor:
    """Writes at indices of the batch, the ragged dimension and perhaps later ones; or, of padded sequences, at fewer."""
    tensor, indices, values, accumulate = arguments
    if not isinstance(tensor, NestedTensor) or any(isinstance(i, NestedTensor) for i in (*indices, values)) or None in indices:
        raise not_implemented("index_put", "only its input may be nested")
    r, ragged = tensor._ragged_idx, tensor._ragged
    if len(indices) <= r:
        if ragged.lengths is not None:
            raise RuntimeError("index_put(): If ragged dimension is not part of indices, this only works on contiguous NJTs")
        result = jagged_of(call("index_put", [padded(tensor, 0), indices, values, accumulate]), ragged, tensor._total, r)
        return given("index_put", result._elements, into, tensor)
    batch, place = indices[0], indices[r]
    if batch.dtype is _C.bool or place.dtype is _C.bool:
        raise not_implemented("index_put", "masks of the batch or the ragged dimension are not implemented")
    batch = _C.torch.where(batch < 0, batch + ragged.batch, batch)
    lengths = ragged.seqlens()[batch]
    outside = ((place < 0) | (place >= lengths)).any()
    if bool(outside):
        raise RuntimeError("Some indices in the ragged dimension are out of bounds!")
    inner = [*indices[1:r], ragged.offsets[batch] + place, *indices[r + 1 :]]
    return given("index_put", call("index_put", [tensor._elements, inner, values, accumulate]), into, tensor)


def _prelu(arguments: list, into: list | None) -> NestedTensor:
    if isinstance(arguments[1], NestedTensor) or arguments[1].numel() != 1:
        raise not_implemented("prelu", "a weight per channel is not implemented")
    tensor, weight = arguments
    return given("prelu", call("prelu", [tensor._elements, weight]), into, tensor)


for _name in _ELEMENTWISE:
    if hasattr(_C.ops, _name):
        handlers[_name] = _elementwise(_name)
for _name in _LIKE:
    if hasattr(_C.ops, _name):
        handlers[_name] = _like(_name)
handlers.update(
    pointwise=_pointwise, to_device=_to_device, contiguous=_contiguous, dropout=_dropout, assign=_assign, fill=_fill,
    full_like=_full_like, masked_fill=_masked_fill, where=_where, prelu=_prelu,
    index_put=_index_put,
)  # fmt: skip
