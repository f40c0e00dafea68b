"""Reductions, cumulative sums and the places of extrema."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import teletensor as torch

from .. import _values
from .._call import Call, keeps

Tensor = torch.Tensor


def _dims(call: Call, x: Tensor, axes: Any) -> list[int] | None:
    """The dimensions of a reduction; None to leave the input as it is."""
    found = call.get("axes") if axes is None else _values.ints(axes)
    if not found:
        return None if call.get("noop_with_empty_axes", 0) else list(range(x.dim()))
    return sorted({int(a) % x.dim() for a in found}) if x.dim() else []


def _reduction(function: Callable, map_first: Callable | None = None) -> Callable:
    @keeps(1)
    def reduce(call: Call, x: Tensor, axes: Any = None) -> Tensor:
        dims = _dims(call, x, axes)
        if map_first is not None:
            x = map_first(x)
        if dims is None:
            return function(x.unsqueeze(0), [0], False) if function is _log_sum else x
        if not dims:
            return function(x.reshape([1]), [0], False).reshape([])
        return function(x, dims, bool(call.get("keepdims", 1)))

    return reduce


def _sum(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return torch.sum(x, dims, keep, dtype=x.dtype)


def _mean(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if not x.dtype.is_floating_point:
        return torch.mean(x.to(torch.float64), dims, keep).to(x.dtype)
    return torch.mean(x, dims, keep)


def _prod(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for dim in reversed(dims):
        x = torch.prod(x, dim, keep, dtype=x.dtype)
    return x


def _extremum(function: Callable, sign: float) -> Callable:
    def reduce(x: Tensor, dims: list[int], keep: bool) -> Tensor:
        if 0 in [x.shape[d] for d in dims]:
            shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
            if x.dtype.is_floating_point:
                return torch.full(shape, sign * math.inf, dtype=x.dtype, device=x.device)
            info = torch.iinfo(x.dtype) if x.dtype != torch.bool else None
            edge = (sign > 0) if info is None else info.max if sign > 0 else info.min
            return torch.full(shape, edge, dtype=x.dtype, device=x.device)
        if x.dtype == torch.bool:
            return function(x.to(torch.uint8), dims, keep).to(torch.bool)
        return function(x, dims, keep)

    return reduce


def _log_sum(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if not x.dtype.is_floating_point:
        return torch.log(_sum(x.to(torch.float64), dims, keep)).to(x.dtype)
    return torch.log(_sum(x, dims, keep))


def _log_sum_exp(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if not x.dtype.is_floating_point:
        return _log_sum_exp(x.to(torch.float64), dims, keep).to(x.dtype)
    if 0 in [x.shape[d] for d in dims]:
        return torch.log(_sum(torch.exp(x), dims, keep))
    return torch.logsumexp(x, dims, keep)


def _l2(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if not x.dtype.is_floating_point:
        return torch.sqrt(_sum(x * x, dims, keep).to(torch.float64)).to(x.dtype)
    return torch.sqrt(_sum(x * x, dims, keep))


def _at(function: Callable) -> Callable:
    def find(call: Call, x: Tensor) -> Tensor:
        axis, keep = call.get("axis", 0), bool(call.get("keepdims", 1))
        if call.get("select_last_index", 0):
            return x.shape[axis] - 1 - function(torch.flip(x, [axis]), dim=axis, keepdim=keep)
        return function(x, dim=axis, keepdim=keep)

    return find


def _cumulative(function: Callable, start: int) -> Callable:
    @keeps(1)
    def accumulate(call: Call, x: Tensor, axis: Any) -> Tensor:
        dim = int(_values.integer(axis))
        if _values.fixed(x.shape[dim]) and x.shape[dim] == 0:
            return x
        if call.get("reverse", 0):
            x = torch.flip(x, [dim])
        if call.get("exclusive", 0):
            first = torch.full_like(x.narrow(dim, 0, 1), start)
            x = torch.cat([first, x.narrow(dim, 0, x.shape[dim] - 1)], dim)
        found = function(x, dim, dtype=x.dtype)
        return torch.flip(found, [dim]) if call.get("reverse", 0) else found

    return accumulate


TABLE: dict[str, tuple] = {
    "ReduceSum": ((1, _reduction(_sum)),), "ReduceMean": ((1, _reduction(_mean)),), "ReduceProd": ((1, _reduction(_prod)),),
    "ReduceMax": ((1, _reduction(_extremum(torch.amax, -1.0))),), "ReduceMin": ((1, _reduction(_extremum(torch.amin, 1.0))),),
    "ReduceL1": ((1, _reduction(_sum, torch.abs)),), "ReduceL2": ((1, _reduction(_l2)),),
    "ReduceLogSum": ((1, _reduction(_log_sum)),), "ReduceLogSumExp": ((1, _reduction(_log_sum_exp)),),
    "ReduceSumSquare": ((1, _reduction(_sum, torch.square)),), "ArgMax": ((1, _at(torch.argmax)),),
    "ArgMin": ((1, _at(torch.argmin)),), "CumSum": ((11, _cumulative(torch.cumsum, 0)),),
    "CumProd": ((26, _cumulative(torch.cumprod, 1)),),
}  # fmt: skip
