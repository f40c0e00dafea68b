"""Reductions of jagged tensors, and softmax: over the ragged dimension, over others, or over all elements."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import finfo, iinfo
from .base import not_implemented
from .engine import call, parameters
from .padding import padded, ragged_first
from .pointwise import without_holes
from .tensor import NestedTensor, handlers, wrapped

# Operators with parameters dim and keepdim that can reduce dimensions other than the batch and the ragged one.
_REDUCTIONS = (
    "sum mean prod amax amin any all argmax argmin max_dim min_dim var std var_dim std_dim var_mean var_mean_dim std_mean std_mean_dim "
    "var_fraction std_fraction var_mean_fraction std_mean_fraction logsumexp norm norm_named vector_norm count_nonzero nansum nanmean "
    "median_dim nanmedian_dim mode"
).split()
# Reductions of all elements, without parameters for dimensions.
_FULL = "max_all min_all std_all var_all std_mean_all var_mean_all median nanmedian aminmax".split()
# Operators that compute along a dimension and keep its size.
_ALONG = "cumsum cumprod logcumsumexp cummax cummin sort sort_stable topk flip roll msort normalize glu renorm".split()


def _sum(tensor: NestedTensor, dtype: Any = None) -> Tensor:
    values = ragged_first(tensor)
    if dtype is None and not (values.dtype.is_floating_point or values.dtype.is_complex):
        dtype = _C.int64
    if values.dtype.is_complex:
        raise not_implemented("sum", "sums of complex numbers over the ragged dimension are not implemented")
    return _segments(values if dtype is None else values.to(dtype), tensor, "sum")


def _segments(values: Tensor, tensor: NestedTensor, reduce: str) -> Tensor:
    return _C.ops.jagged_reduce(values, tensor._ragged.offsets, tensor._ragged.lengths, reduce)


def _mean(tensor: NestedTensor, dtype: Any = None) -> Tensor:
    wanted = tensor.dtype if dtype is None else dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {wanted}"
        )
    sums = _sum(tensor, dtype)
    counts = tensor._ragged.seqlens().reshape(-1, *[1] * (sums.dim() - 1))
    return (sums / counts).to(wanted)


def _truth(reduce: str):
    def reduced(tensor: NestedTensor) -> Tensor:
        truths = ragged_first(tensor).ne(0).to(_C.uint8)
        return _segments(truths, tensor, reduce).ne(0)

    return reduced


def _product(tensor: NestedTensor, *dtype: Any) -> Tensor:
    return call("prod", [padded(tensor, 1), [tensor._ragged_idx], False, *dtype])


def _extremum(name: str, sign: int):
    """An extremum or its index, of padded sequences. Padding is infinite, so that no number of a sequence is beyond it."""

    def reduced(tensor: NestedTensor) -> Any:
        r, dtype = tensor._ragged_idx, tensor.dtype
        limits = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
        limit = limits.max if sign > 0 else limits.min
        result = call(name, [padded(tensor, sign * math.inf if dtype.is_floating_point else limit), r, False])
        if isinstance(result, Tensor) or not dtype.is_floating_point:
            return result
        values, indices = result  # of a sequence without entries, as amax(): the least number, which is finite
        empty = tensor._ragged.seqlens().eq(0).reshape(-1, *[1] * (values.dim() - 1))
        return type(result)((_C.torch.masked_fill(values, empty, limit), indices))

    return reduced


# Reductions of the ragged dimension: of a tensor and the operator's arguments after keepdim.
_RAGGED = {
    "sum": _sum, "mean": _mean, "amax": lambda t: _segments(ragged_first(t), t, "amax"),
    "amin": lambda t: _segments(ragged_first(t), t, "amin"), "any": _truth("amax"), "all": _truth("amin"),
    "prod": _product, "max_dim": _extremum("max_dim", -1), "min_dim": _extremum("min_dim", 1), "argmax": _extremum("argmax", -1),
    "argmin": _extremum("argmin", 1),
}  # fmt: skip


def _each(result: Any, function: Any) -> Any:
    return type(result)(function(r) for r in result) if isinstance(result, (list, tuple)) else function(result)


def _replaced(arguments: list, **values: Any) -> list:
    place = values.pop("place")
    return [*arguments[:place], values["value"], *arguments[place + 1 :]]


def _reduce(name: str):
    names = parameters(name)[0]
    at, keep = names.index("dim"), names.index("keepdim") if "keepdim" in names else None

    def handle(arguments: list, into: list | None) -> Any:
        tensor, dim = arguments[0], arguments[at]
        if into is not None or not isinstance(tensor, NestedTensor):
            raise not_implemented(f"{name}.out")
        keepdim = keep is not None and arguments[keep]
        if dim is None or (isinstance(dim, list) and not dim):
            result = call(name, [without_holes(tensor)._elements, *arguments[1:]])
            return _each(result, lambda t: t.unsqueeze(0)) if keepdim else result
        dims = [tensor._dim(d) for d in (dim if isinstance(dim, list) else [dim])]
        if tensor._ragged_idx in dims:
            return _over_ragged(tensor, dims, arguments, bool(keepdim))
        if 0 in dims:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
            )
        inner = [d - 1 for d in dims]
        result = call(name, [tensor._elements, *_replaced(arguments, place=at, value=inner if isinstance(dim, list) else inner[0])[1:]])
        moved = 0 if keepdim else sum(d < tensor._ragged_idx - 1 for d in inner)
        return _each(result, lambda t: wrapped(t, tensor._ragged, tensor._ragged_idx - moved))

    def _over_ragged(tensor: NestedTensor, dims: list[int], arguments: list, keepdim: bool) -> Any:
        r = tensor._ragged_idx
        if 0 in dims:  # all sequences at once
            inner = sorted({r - 1 if d == 0 else d - 1 for d in dims})
            if not isinstance(arguments[at], list):
                inner = inner[0]
            result = call(name, [without_holes(tensor)._elements, *_replaced(arguments, place=at, value=inner)[1:]])
            return _each(result, lambda t: t.unsqueeze(0)) if keepdim else result
        if len(dims) > 1:
            raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors")
        if name not in _RAGGED:
            raise not_implemented(name, "it is not implemented over the ragged dimension")
        rest = [a for a in arguments[(keep or at) + 1 :] if a is not None]
        result = _RAGGED[name](tensor, *rest)
        return _each(result, lambda t: t.unsqueeze(r)) if keepdim else result

    return handle


def _full(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor = arguments[0]
        if into is not None or not isinstance(tensor, NestedTensor):
            raise not_implemented(f"{name}.out")
        if "dim" in parameters(name)[0] and arguments[parameters(name)[0].index("dim")] is not None:
            raise not_implemented(name, "it is implemented for all elements only")
        return call(name, [without_holes(tensor)._elements, *arguments[1:]])

    return handle


def _softmax(name: str):
    def handle(arguments: list, into: list | None) -> NestedTensor:
        tensor, dim, dtype = arguments
        if into is not None:
            raise not_implemented(f"{name}.out")
        place = tensor._dim(dim)
        if place == 0:
            raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
        if place != tensor._ragged_idx:
            return tensor._with(call(name, [tensor._elements, place - 1, dtype]))
        values = ragged_first(tensor)
        wanted = values.dtype if dtype is None else dtype
        wide = values.to(_C.float32 if wanted in (_C.float16, _C.bfloat16) else wanted)
        result = _C.ops.jagged_softmax(wide, tensor._ragged.offsets, tensor._ragged.lengths, name == "log_softmax").to(wanted)
        return tensor._with(result if tensor._ragged_idx == 1 else result.movedim(0, tensor._ragged_idx - 1))

    return handle


def _along(name: str):
    names = parameters(name)[0]

    def handle(arguments: list, into: list | None) -> Any:
        tensor = arguments[0]
        key = next((k for k in ("dim", "dims") if k in names), None)
        if into is not None or key is None or not isinstance(tensor, NestedTensor):
            raise not_implemented(name)
        at = names.index(key)
        dim = arguments[at]
        inner = [tensor._inner(d, name) for d in dim] if isinstance(dim, list) else tensor._inner(dim, name)
        result = call(name, [tensor._elements, *_replaced(arguments, place=at, value=inner)[1:]])
        return _each(result, tensor._with)

    return handle


for _name in _REDUCTIONS:
    if hasattr(_C.ops, _name) and "dim" in parameters(_name)[0]:
        handlers[_name] = _reduce(_name)
for _name in _FULL:
    if hasattr(_C.ops, _name):
        handlers[_name] = _full(_name)
for _name in _ALONG:
    if hasattr(_C.ops, _name):
        handlers[_name] = _along(_name)
handlers.update(softmax=_softmax("softmax"), log_softmax=_softmax("log_softmax"))
