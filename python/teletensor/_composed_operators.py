"""Operators of the engine as calls of others, for tensors of layouts without a handler of their own.

The engine has one kernel for what PyTorch composes of several operators, so that a layout with the parts computes the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _C
from ._C import Tensor

_torch = _C.torch


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _isclose(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    close = input == other
    if equal_nan and input.is_floating_point():
        close = close.logical_or(input.isnan().logical_and(other.isnan()))
    if rtol == 0 and atol == 0:
        return close
    difference, allowed = (input - other).abs(), atol + (rtol * other).abs()
    return close | (isfinite(difference) & (difference <= allowed))


def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    if not (input.is_floating_point() or input.is_complex()):
        return _torch.ones_like(input, dtype=_C.bool)
    return (input == input) * (input.abs() != math.inf)


def _repeat_interleave(input: Tensor, repeats: int, dim: int | None) -> Tensor:
    rows, place = (input.flatten(), 0) if dim is None else (input, dim)
    if not isinstance(rows.size(place), int):
        raise NotImplementedError("[repeat_interleave] expected a dimension that is not ragged")
    index = _torch.arange(rows.size(place), device=input.device).repeat_interleave(repeats)
    return rows.index_select(place, index)


def _kron(input: Tensor, other: Tensor) -> Tensor:
    n = max(input.dim(), other.dim())
    sizes = [(1,) * (n - t.dim()) + tuple(t.shape) for t in (input, other)]
    first = input.reshape([s for size in sizes[0] for s in (size, 1)])
    second = other.reshape([s for size in sizes[1] for s in (1, size)])
    return (first * second).reshape([a * b for a, b in zip(*sizes)])


def _trapezoid(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    if x is None:
        return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx
    if x.dim() != 1:
        return ((x.diff(dim=dim)) * (y.narrow(dim, 0, y.size(dim) - 1) + y.narrow(dim, 1, y.size(dim) - 1))).sum(dim) / 2.0
    steps = x.diff()
    steps = steps.reshape([-1 if d == dim % y.dim() else 1 for d in range(y.dim())])
    return (steps * (y.narrow(dim, 0, y.size(dim) - 1) + y.narrow(dim, 1, y.size(dim) - 1))).sum(dim) / 2.0


def _hinge_embedding_loss(input: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    zeros = _torch.zeros_like(input)
    far = _torch.where(target != 1, (margin - input).clamp(min=0), zeros)
    return _reduced(far + _torch.where(target != -1, input, zeros), reduction)


def _kl_div(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    return _reduced(loss, reduction)


def _poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: str) -> Tensor:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


def _gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool, eps: float, reduction: str) -> Tensor:
    var = var.detach().clamp(min=eps) + (var - var.detach())  # the gradient of elements below eps is 1, as in PyTorch
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def _margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    return _reduced((margin - target * (input1 - input2)).clamp(min=0), reduction)


def _pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def _triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> Tensor:
    near, far = _pairwise_distance(anchor, positive, p, eps, False), _pairwise_distance(anchor, negative, p, eps, False)
    if swap:
        far = far.minimum(_pairwise_distance(positive, negative, p, eps, False))
    return _reduced((margin + near - far).clamp(min=0), reduction)


def _float_power(input: Any, exponent: Any) -> Tensor:
    is_complex = any(v.is_complex() if isinstance(v, Tensor) else isinstance(v, complex) for v in (input, exponent))
    wide = _C.complex128 if is_complex else _C.float64
    first, second = (v.to(wide) if isinstance(v, Tensor) else v for v in (input, exponent))
    return first**second


def _outer(input: Tensor, vec2: Tensor) -> Tensor:
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.dim()}-D")
    return input.unsqueeze(1) * vec2


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = input @ weight.t()
    return product if bias is None else product + bias


# The arguments are those of the engine's operator, in the order of its declaration.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "expand_as": lambda input, other: input.expand(other.shape),
    "view_as": lambda input, other: input.view(other.shape),
    "reshape_as": lambda input, other: input.reshape(other.shape),
    "special_ndtr": lambda input: ((input * math.sqrt(0.5)).erf() + 1) * 0.5,
    "softsign": lambda input: input / (input.abs() + 1),
    "tanhshrink": lambda input: input - input.tanh(),
    "max_other": lambda input, other: input.maximum(other),
    "min_other": lambda input, other: input.minimum(other),
    "ldexp": lambda input, other: input * 2.0**other,
    "hstack": lambda tensors: _torch.cat(tensors, 1 if tensors[0].dim() > 1 else 0),
    "vstack": lambda tensors: _torch.cat([t if t.dim() > 1 else t.reshape(1, -1) for t in tensors]),
    "l1_loss": lambda input, target, reduction: _reduced((input - target).abs(), reduction),
    "isfinite": isfinite, "isclose": _isclose, "repeat_interleave": _repeat_interleave, "kron": _kron, "trapezoid": _trapezoid,
    "hinge_embedding_loss": _hinge_embedding_loss, "kl_div": _kl_div, "poisson_nll_loss": _poisson_nll_loss,
    "gaussian_nll_loss": _gaussian_nll_loss,
    "margin_ranking_loss": _margin_ranking_loss, "pairwise_distance": _pairwise_distance, "triplet_margin_loss": _triplet_margin_loss,
    "float_power": _float_power, "linear": _linear, "outer": _outer,
}  # fmt: skip


def compose(name: str, arguments: list, into: list | None, refused: type[Exception]) -> Any:
    """The operator's result by others; NotImplemented if it is none of them, or if one of them raises `refused` for the layout."""
    function = _COMPOSED.get(name)
    if function is None:
        return NotImplemented
    try:
        result = function(*arguments)
    except refused:
        return NotImplemented
    except RuntimeError as error:
        if type(error) is not RuntimeError or name in str(error):
            raise
        raise RuntimeError(f"[{name}] {error}") from error
    return result if into is None else into[0].copy_(result)
