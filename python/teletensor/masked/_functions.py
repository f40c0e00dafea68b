"""Reductions, scans and normalisations over the unmasked elements, i.e. those whose mask is True, also of masked tensors."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._integers import repeated
from .._layouts import strided
from . import _sparse
from ._tensor import MaskedTensor

_torch, _ops = _C.torch, _C.ops


def _accepts_masked(function: Callable) -> Callable:
    """Lets `input` be a MaskedTensor, whose data and mask are passed, and sparse where _sparse.py has the reduction; and any mask."""
    name = function.__name__

    @functools.wraps(function)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if isinstance(input, MaskedTensor):
            _check_no_mask(name, kwargs.get("mask"))
            input, kwargs["mask"] = input._masked_data, input._masked_mask
        if name not in _sparse.LAYOUTS:
            _check_strided(name, input)
        return function(input, *args, **kwargs)

    return call


def _check_strided(name: str, *tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.layout != strided:
            raise ValueError(f"masked {name} expects strided tensor (got {tensor.layout} tensor)")


def _check_no_mask(name: str, mask: Any) -> None:
    if mask is not None:
        raise ValueError(f"[{name}] expected no mask for a MaskedTensor, which has one")


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """The mask as a bool tensor of the input's shape. Further arguments, those of a masked function, have no effect."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return _sparse.input_mask(input, mask)


def _apply_mask(input: Tensor, mask: Tensor | None, otherwise) -> Tensor:
    """Replaces the masked-out elements of input by `otherwise`."""
    if mask is None:
        return input
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    full = _torch.full([], otherwise, dtype=input.dtype, device=input.device)
    return _torch.where((mask if mask.layout == strided else mask.to_dense()).to(_C.bool), input, full)


def _dims(dim, ndim: int) -> list[int]:
    """Returns the given dimensions, by default all; rejects duplicates."""
    if dim is None or dim == ():
        return list(range(ndim))
    dims = list(repeated(dim, 1))
    for d in dims:
        _check_range(d, ndim)
    if len(set(d % max(1, ndim) for d in dims)) != len(dims):
        raise RuntimeError(f"dim={dims[-1]} appears multiple times in the list of dims")
    return dims


def _check_range(dim: int, ndim: int) -> None:
    if not -max(1, ndim) <= dim < max(1, ndim):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-max(1, ndim)}, {max(1, ndim) - 1}], but got {dim})")


def _one_dim(dim, ndim: int) -> int:
    """The least of the given dimensions, as in PyTorch; 0 if none is given."""
    return 0 if dim is None or dim == () else min(d % max(1, ndim) for d in _dims(dim, ndim))


@_accepts_masked
def sum(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:  # noqa: A001
    """The sum of the unmasked elements."""
    if input.layout != strided:
        return _sparse.reduced("sum", input, _dims(dim, input.dim()), keepdim, dtype or _sum_dtype(input.dtype), mask)
    masked = _apply_mask(_cast(input, dtype, _sum_dtype), mask, 0)
    return masked.sum(_dims(dim, input.dim()), keepdim).to(masked.dtype)


def _sum_dtype(dtype):
    return dtype if dtype.is_floating_point or dtype.is_complex else _C.int64


def _scan_dtype(dtype):
    return _C.int64 if dtype is _C.bool else dtype


def _cast(input: Tensor, dtype, otherwise: Callable) -> Tensor:
    return input.to(dtype if dtype is not None else otherwise(input.dtype))


@_accepts_masked
def prod(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The product of the unmasked elements."""
    if input.layout != strided:
        return _sparse.reduced("prod", input, _dims(dim, input.dim()), keepdim, dtype or _sum_dtype(input.dtype), mask)
    result = _apply_mask(_cast(input, dtype, _sum_dtype), mask, 1)
    for d in sorted((d % max(1, input.dim()) for d in _dims(dim, input.dim())), reverse=True):
        result = result.prod(d, keepdim)
    return result


@_accepts_masked
def cumsum(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The cumulative sums of the unmasked elements."""
    dtype = dtype or _scan_dtype(input.dtype)
    return _apply_mask(input.to(dtype), mask, 0).cumsum(_one_dim(dim, input.dim())).to(dtype)


@_accepts_masked
def cumprod(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The cumulative products of the unmasked elements."""
    dtype = dtype or _scan_dtype(input.dtype)
    return _apply_mask(input.to(dtype), mask, 1).cumprod(_one_dim(dim, input.dim())).to(dtype)


@_accepts_masked
def amax(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The largest unmasked element; the dtype's minimum if there is none."""
    if input.layout != strided:
        return _sparse.reduced("amax", input, _dims(dim, input.dim()), keepdim, dtype or input.dtype, mask)
    masked = _apply_mask(input, mask, _sparse.identity("amax", input.dtype))
    return _cast(masked.amax(_dims(dim, input.dim()), keepdim), dtype, lambda t: t)


@_accepts_masked
def amin(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The smallest unmasked element; the dtype's maximum if there is none."""
    if input.layout != strided:
        return _sparse.reduced("amin", input, _dims(dim, input.dim()), keepdim, dtype or input.dtype, mask)
    return _cast(_apply_mask(input, mask, _sparse.identity("amin", input.dtype)).amin(_dims(dim, input.dim()), keepdim), dtype, lambda t: t)


@_accepts_masked
def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The index of the largest unmasked element."""
    return _cast(_apply_mask(input, mask, _sparse.identity("amax", input.dtype)).argmax(dim, keepdim), dtype, lambda t: input.dtype)


@_accepts_masked
def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The index of the smallest unmasked element."""
    return _cast(_apply_mask(input, mask, _sparse.identity("amin", input.dtype)).argmin(dim, keepdim), dtype, lambda t: input.dtype)


@_accepts_masked
def logsumexp(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exp of the unmasked elements."""
    masked = _apply_mask(input, mask, _sparse.identity("amax", input.dtype))
    return _cast(masked.logsumexp(_dims(dim, input.dim()), keepdim), dtype, lambda t: input.dtype)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype=None, input_mask: Tensor | None = None, other_mask: Tensor | None = None
) -> Tensor:
    """log(exp(input) + exp(other)), with -inf in place of masked-out elements."""
    if isinstance(input, MaskedTensor):
        _check_no_mask("logaddexp", input_mask)
        input, input_mask = input._masked_data, input._masked_mask
    if isinstance(other, MaskedTensor):
        _check_no_mask("logaddexp", other_mask)
        other, other_mask = other._masked_data, other._masked_mask
    _check_strided("logaddexp", input, other)
    a = _apply_mask(input, input_mask, _sparse.identity("amax", input.dtype))
    b = _apply_mask(other, other_mask, _sparse.identity("amax", other.dtype))
    return _torch.logaddexp(a, b).to(dtype or input.dtype)


def _count(input: Tensor, dim, keepdim: bool, mask: Tensor | None) -> Tensor:
    """The number of unmasked elements."""
    ones = _torch.ones(input.shape, dtype=_C.int64, device=input.device)
    return _apply_mask(ones, mask, 0).sum(_dims(dim, input.dim()), keepdim)


@_accepts_masked
def mean(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The mean of the unmasked elements; NaN if there are none."""
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    if input.layout != strided:
        return _sparse.reduced("mean", input, _dims(dim, input.dim()), keepdim, dtype, mask)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dim, keepdim, mask)


@_accepts_masked
def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The lower median of the unmasked elements along dim; NaN if there are none. Waits if the input has integers."""
    real = input.is_floating_point()
    values = input if real else input.to(_C.float32)
    result = _apply_mask(values, mask, math.nan).nanmedian(_one_dim(dim, input.dim()), keepdim)[0]
    if real:
        return result
    if bool(result.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype or input.dtype)


@_accepts_masked
def norm(input: Tensor, ord=2.0, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The vector norm of the unmasked elements."""
    if isinstance(ord, str):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {ord!r}")
    if dtype is not None and dtype.is_complex != input.is_complex():
        kind = "complex" if input.is_complex() else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {dtype}")
    masked = _apply_mask(input, mask, math.inf if ord == -math.inf else 0)
    return _ops.vector_norm(masked, float(ord), _dims(dim, input.dim()), keepdim, dtype=dtype)


@_accepts_masked
def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The unmasked elements divided by their norm along dim; 0 elsewhere."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask).clamp_min(eps)
    return _apply_mask(input, mask, 0) / length


def _variance(input: Tensor, dim, unbiased, correction, keepdim: bool, dtype, mask) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = float(correction) if correction is not None else 1.0 if unbiased is None else float(unbiased)
    real = input.dtype.is_floating_point or input.dtype.is_complex
    dtype = dtype or (input.dtype if real else _C.float32)
    computed = dtype if dtype.is_floating_point or dtype.is_complex else _C.float32
    center = sum(input, dim, keepdim=True, dtype=computed, mask=mask) / _count(input, dim, True, mask)
    distance = _apply_mask(input, mask, 0) - center  # finite, so that gradients are, too
    total = sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    freedom = (_count(input, dim, keepdim, mask).to(_C.float64) - less).clamp_min(0).to(total.dtype)
    return (total / freedom).to(dtype)


@_accepts_masked
def var(input: Tensor, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None) -> Tensor:
    """The variance of the unmasked elements."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@_accepts_masked
def std(input: Tensor, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None) -> Tensor:
    """The standard deviation of the unmasked elements."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


@_accepts_masked
def softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """softmax over the unmasked elements; 0 elsewhere."""
    dim = _one_dim(dim, input.dim())
    return _ops.softmax(_apply_mask(input, mask, _sparse.identity("amax", input.dtype)), dim, dtype=dtype or input.dtype)


@_accepts_masked
def log_softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """log_softmax over the unmasked elements; -inf elsewhere."""
    dim = _one_dim(dim, input.dim())
    return _ops.log_softmax(_apply_mask(input, mask, _sparse.identity("amax", input.dtype)), dim, dtype=dtype or input.dtype)


@_accepts_masked
def softmin(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated unmasked elements; 0 elsewhere."""
    dim = _one_dim(dim, input.dim())
    return _ops.softmax(-_apply_mask(input, mask, _sparse.identity("amin", input.dtype)), dim, dtype=dtype or input.dtype)
