"""Reductions and accumulations along axes."""

from __future__ import annotations

import math
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from . import _manipulation
from ._dtypes import kind_of
from ._tables import with_standard_name

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var",
]  # fmt: skip

_torch, _ops = _C.torch, _C.ops


def _dims_to_reduce(x: Tensor, axis: Any) -> tuple[Tensor, Any]:
    """Returns the tensor and the dims to reduce. If axis is (), adds an axis of size 1 and reduces only this axis."""
    return (x.unsqueeze(-1), [-1]) if axis == () else (x, axis if axis is None or isinstance(axis, int) else list(axis))


def _reduction(name: str, ours: Callable) -> Callable:
    def reduce(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        values, dims = _dims_to_reduce(x, axis)
        return ours(values, dims, keepdim=keepdims and axis != ())

    return with_standard_name(name, reduce)


def _accumulation(name: str, ours: Callable) -> Callable:
    def reduce(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        values, dims = _dims_to_reduce(x, axis)
        return ours(values, dims, keepdim=keepdims and axis != (), dtype=dtype or _accumulated(x.dtype))

    return with_standard_name(name, reduce)


def _product(x: Tensor, dims: Any, *, keepdim: bool, dtype: Any) -> Tensor:
    """The product over several dims. Reduces them one by one from the last, since torch.prod accepts only one dim."""
    if not isinstance(dims, list):
        return _torch.prod(x, dims, keepdim, dtype=dtype)
    for d in sorted(_manipulation.non_negative_axes(dims, x.ndim), reverse=True):
        x = _torch.prod(x, d, keepdim, dtype=dtype)
    return x


def _accumulated(dtype: _C.dtype) -> _C.dtype | None:
    """The dtype of sums of integers: the widest integer of the same signedness. None (PyTorch's default) otherwise."""
    return {"unsigned integer": _C.uint64, "signed integer": _C.int64}.get(kind_of(dtype))


def _arg_reduction(name: str, ours: Callable) -> Callable:
    def find(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
        if axis is not None:
            return ours(x, axis, keepdims)
        index = ours(x.reshape(-1), 0, False)
        return index.reshape((1,) * x.ndim) if keepdims else index

    return with_standard_name(name, find)


def _cumulative(name: str, ours: Callable, initial: int) -> Callable:
    def accumulate(
        x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Tensor:
        if axis is None:
            if x.ndim > 1:
                raise ValueError(f"{name}(): axis must be given for an array of {x.ndim} dimensions")
            axis = 0
        values = x.reshape(1) if x.ndim == 0 else x
        result = ours(values, axis, dtype=dtype or _accumulated(x.dtype))
        if not include_initial:
            return result.reshape(x.shape)
        sizes = list(result.shape)
        sizes[axis] = 1
        return _torch.cat([_torch.full(sizes, initial, dtype=result.dtype, device=x.device), result], axis)

    return with_standard_name(name, accumulate)


def _variance(name: str, finish: Callable) -> Callable:
    def reduce(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        values, dims = _dims_to_reduce(x, axis)
        keep = keepdims and axis != ()
        if correction == int(correction):
            return finish(_torch.var(values, dims, correction=int(correction), keepdim=keep))
        dims = range(values.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
        count = math.prod(values.shape[d] for d in dims)
        scale = count / (count - correction) if count > correction else math.inf
        return finish(_torch.var(values, list(dims), correction=0, keepdim=keep) * scale)

    return with_standard_name(name, reduce)


def _as_bool(ours: Callable) -> Callable:
    return lambda x, dims, keepdim: ours(x, dims, keepdim).to(_C.bool)  # PyTorch returns uint8 for uint8


all, any = _reduction("all", _as_bool(_torch.all)), _reduction("any", _as_bool(_torch.any))
max, mean, min = _reduction("max", _torch.amax), _reduction("mean", _torch.mean), _reduction("min", _torch.amin)
prod, sum = _accumulation("prod", _product), _accumulation("sum", _torch.sum)
argmax, argmin = _arg_reduction("argmax", _torch.argmax), _arg_reduction("argmin", _torch.argmin)
cumulative_prod, cumulative_sum = (
    _cumulative("cumulative_prod", _torch.cumprod, 1),
    _cumulative("cumulative_sum", _torch.cumsum, 0),
)
std, var = _variance("std", _torch.sqrt), _variance("var", lambda variance: variance)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements."""
    return sum(x != 0, axis=axis, dtype=_C.int64, keepdims=keepdims)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences of adjacent elements, after prepend and append are concatenated to x."""
    parts = [part for part in (prepend, x, append) if part is not None]
    x = _torch.cat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis] - 1
        left, right = x.narrow(axis, 0, size), x.narrow(axis, 1, size)
        x = left != right if x.dtype is _C.bool else right - left
    return x
