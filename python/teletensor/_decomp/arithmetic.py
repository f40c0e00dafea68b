"""Decompositions of operators that compute: sums and comparisons, functions of elements, losses.

Each function has the arguments of its operator in `torch.ops.aten`, and computes in the arguments' dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import teletensor as torch

from .._C import Tensor
from ..ops import aten
from .layout import dims_of, masked_fill, scaled

_INF = math.inf


def _plus(x: Tensor, y: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * x + alpha * y. As in BLAS, x is not read if beta is 0."""
    y = scaled(y, alpha)
    return y.clone() if beta == 0 else scaled(x, beta) + y


def _reduced(loss: Tensor, reduction: int | str) -> Tensor:
    """The mean (1, "mean"), the sum (2, "sum") or all terms of a loss."""
    return loss.mean() if reduction in (1, "mean") else loss.sum() if reduction in (2, "sum") else loss


# Sums and comparisons


def _all(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    found = torch.any(self.logical_not(), dims_of(self, dim), keepdim) if self.dim() else self.logical_not()
    return found.bool().logical_not().to(torch.uint8 if self.dtype is torch.uint8 else torch.bool)


def _aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return self.amin(dims_of(self, dim), keepdim), self.amax(dims_of(self, dim), keepdim)


def _nansum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype=None) -> Tensor:
    return _where_zero(self.isnan(), self).sum(dims_of(self, dim), keepdim, dtype=dtype)


def _vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype=None) -> Tensor:  # noqa: A002
    x, dims = self if dtype is None else self.to(dtype), dims_of(self, dim)
    x = x.abs()
    if not dims:
        return (x != 0).to(x.dtype) if ord == 0 else x
    if abs(ord) == _INF:
        return x.amax(dims, keepdim) if ord > 0 else x.amin(dims, keepdim)
    if ord == 0:
        return (x != 0).to(x.dtype).sum(dims, keepdim)
    return x.sum(dims, keepdim) if ord == 1 else (x**ord).sum(dims, keepdim) ** (1 / ord)


def _norm(self: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype=None) -> Tensor:
    return _vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def _std(self: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return torch.var(self, dims_of(self, dim), correction=1 if correction is None else correction, keepdim=keepdim).sqrt()


def _std_unbiased(self: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    return _std(self, dim, correction=int(unbiased), keepdim=keepdim)


def _std_mean(self: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _std(self, dim, correction=correction, keepdim=keepdim), self.mean(dims_of(self, dim), keepdim)


def _logsumexp(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    x = self if self.is_floating_point() or self.is_complex() else self.to(torch.get_default_dtype())
    dims = dims_of(x, dim)
    largest = x.real.amax(dims, True)
    largest = torch.where(largest.abs() == _INF, 0.0, largest)
    total = (x - largest).exp().sum(dims, keepdim).log()
    return total + (largest if keepdim else largest.reshape(total.shape))


def _renorm(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    norms = _vector_norm(self, p, [d for d in range(self.dim()) if d != dim % self.dim()], True)
    return self * torch.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


def multi_margin_loss(
    self: Tensor, target: Tensor, p: Any = 1, margin: Any = 1, weight: Tensor | None = None, reduction: int | str = 1
) -> Tensor:
    rows, classes = self if self.dim() == 2 else self.reshape(1, -1), target.reshape(-1, 1)
    gaps = (margin - rows.gather(1, classes) + rows).clamp_min(0) ** p
    gaps = gaps if weight is None else gaps * weight.index_select(0, target.reshape(-1)).unsqueeze(1)
    losses = gaps.scatter(1, classes, 0.0).sum(1) / rows.shape[1]
    return _reduced(losses.reshape(target.shape), reduction)


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int | str = 1) -> Tensor:
    rows, labels = (t if self.dim() == 2 else t.reshape(1, -1) for t in (self, target))
    precede, indices = (labels >= 0).long().cumprod(1), labels.clamp_min(0)  # the classes before the first negative one
    is_target = torch.zeros_like(rows).scatter_add(1, indices, precede.to(rows.dtype)) > 0
    gaps = (1 - rows.gather(1, indices).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    counted = (precede > 0).unsqueeze(2) & is_target.logical_not().unsqueeze(1)
    losses = gaps.masked_fill(counted.logical_not(), 0.0).sum((1, 2)) / rows.shape[1]
    return _reduced(losses if self.dim() == 2 else losses.reshape([]), reduction)


def _cross(self: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    a, b = torch.broadcast_tensors(self, other)
    return a.roll(-1, dim) * b.roll(-2, dim) - a.roll(-2, dim) * b.roll(-1, dim)


def _isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    device = next(v.device for v in (elements, test_elements) if isinstance(v, Tensor))
    elements, tests = (v if isinstance(v, Tensor) else torch.tensor(v, device=device) for v in (elements, test_elements))
    found = (elements.unsqueeze(-1) == tests.reshape(-1)).any(-1)
    return found.logical_not() if invert else found


# Elements


def _where_zero(condition: Tensor, otherwise: Tensor) -> Tensor:
    return torch.where(condition, torch.zeros((), dtype=otherwise.dtype, device=otherwise.device), otherwise)


def _softplus(self: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    scaled = self * beta
    return torch.where(scaled > threshold, self, scaled.exp().log1p() / beta)


def _heaviside(self: Tensor, values: Tensor) -> Tensor:
    return torch.where(self == 0, values, (self > 0).to(self.dtype))


def _lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Exact at both ends: the distance is measured from the nearer one."""
    from_start, from_end = self + weight * (end - self), end - (end - self) * (1 - weight)
    if isinstance(weight, Tensor):
        return torch.where(weight.abs() < 0.5, from_start, from_end)
    return from_start if abs(weight) < 0.5 else from_end


def _logaddexp(exp: Callable, unit: float) -> Callable:
    def function(self: Tensor, other: Tensor) -> Tensor:
        larger = torch.maximum(self, other)
        total = larger + exp(-(self - other).abs()).log1p() / unit
        return torch.where((self == other) & (self.abs() == _INF), larger, total)

    return function


def _logit(self: Tensor, eps: float | None = None) -> Tensor:
    x = self if eps is None else self.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


def _mvlgamma(self: Tensor, p: int) -> Tensor:
    halves = torch.arange(p, device=self.device, dtype=self.dtype if self.is_floating_point() else torch.get_default_dtype()) / 2
    return (self.unsqueeze(-1) - halves).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def _nan_to_num(self: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    if self.is_complex():
        return torch.view_as_complex(_nan_to_num(torch.view_as_real(self), nan, posinf, neginf))
    if not self.is_floating_point():
        return self.clone()
    limits = torch.finfo(self.dtype)
    x = masked_fill(self, self.isnan(), 0.0 if nan is None else nan)
    x = masked_fill(x, self == _INF, limits.max if posinf is None else posinf)
    return masked_fill(x, self == -_INF, limits.min if neginf is None else neginf)


def _sgn(self: Tensor) -> Tensor:
    if not self.is_complex():
        return self.sign()
    return _where_zero(self == 0, self / self.abs())


def _sinc(self: Tensor) -> Tensor:
    x = self * math.pi
    return torch.where(self == 0, torch.ones((), dtype=x.dtype, device=x.device), x.sin() / x)


def _entr(self: Tensor) -> Tensor:
    return torch.where(self < 0, -_INF, _where_zero(self == 0, -self * self.log()))


def _log_ndtr(self: Tensor) -> Tensor:
    z = self * math.sqrt(0.5)
    return torch.where(self < -1, (torch.special.erfcx(-z) / 2).log() - z * z, (-z.erfc() / 2).log1p())


def _xlog(log: Callable) -> Callable:
    """x * log(y), 0 where x is 0, but not a number where y is none."""

    def function(self: Any, other: Any) -> Tensor:
        device = next(v.device for v in (self, other) if isinstance(v, Tensor))
        x, y = (v if isinstance(v, Tensor) else torch.tensor(v, device=device) for v in (self, other))
        product = x * log(y)
        return torch.where(y.isnan() | (x != 0), product, torch.zeros((), dtype=product.dtype, device=device))

    return function


# Losses


def _binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1) -> Tensor:
    loss = (target - 1) * (-self).log1p().clamp(min=-100) - target * self.log().clamp(min=-100)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _binary_cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    log_sigmoid = self.clamp(max=0) - (-self.abs()).exp().log1p()
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * self - factor * log_sigmoid
    return _reduced(loss if weight is None else loss * weight, reduction)


def _huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    z = (self - target).abs()
    return _reduced(torch.where(z < delta, 0.5 * z * z, delta * (z - 0.5 * delta)), reduction)


def _smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    z = (self - target).abs()
    return _reduced(z if beta == 0 else torch.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta), reduction)


# By operator, or "operator.overload".
DECOMPOSITIONS: dict[str, Callable] = {
    "_softmax_backward_data": lambda grad_output, output, dim, input_dtype: (
        (product := grad_output * output) - output * product.sum(dim, True)
    ).to(input_dtype),
    "addcdiv": lambda self, tensor1, tensor2, *, value=1: self + scaled(tensor1 / tensor2, value),
    "addcmul": lambda self, tensor1, tensor2, *, value=1: self + scaled(tensor1 * tensor2, value),
    "addr": lambda self, vec1, vec2, *, beta=1, alpha=1: _plus(self, vec1.unsqueeze(1) * vec2, beta, alpha),
    "all": _all,
    "aminmax": _aminmax,
    "baddbmm.default": lambda self, batch1, batch2, *, beta=1, alpha=1: _plus(self, batch1.bmm(batch2), beta, alpha),
    "baddbmm.out": lambda self, batch1, batch2, *, beta=1, alpha=1: _plus(self, batch1.bmm(batch2), beta, alpha),
    "binary_cross_entropy": _binary_cross_entropy,
    "binary_cross_entropy_with_logits": _binary_cross_entropy_with_logits,
    "celu": lambda self, alpha=1.0: torch.where(self > 0, self, alpha * (self / alpha).expm1()),
    "clamp_max": lambda self, max: torch.where((self <= max) | self.isnan(), self, max),  # noqa: A006
    "clamp_min": lambda self, min: torch.where((self >= min) | self.isnan(), self, min),  # noqa: A006
    "count_nonzero": lambda self, dim=None: (self != 0).sum(dims_of(self, dim)),
    "deg2rad": lambda self: self * (math.pi / 180),
    "dot": lambda self, tensor: (self * tensor).sum(0),
    "floor_divide": lambda self, other: torch.div(self, other, rounding_mode="floor"),
    "frac": lambda self: self - self.trunc(),
    "glu": lambda self, dim=-1: (halves := self.chunk(2, dim))[0] * halves[1].sigmoid(),
    "hardshrink": lambda self, lambd=0.5: _where_zero(self.abs() <= lambd, self),
    "hardsigmoid": lambda self: (self + 3).clamp(0, 6) / 6,
    "hardswish": lambda self: self * (self + 3).clamp(0, 6) / 6,
    "heaviside": _heaviside,
    "huber_loss": _huber_loss,
    "isin": _isin,
    "isneginf": lambda self: self == -_INF,
    "isposinf": lambda self: self == _INF,
    "lerp": _lerp,
    "linalg_cross": _cross,
    "linalg_vector_norm": _vector_norm,
    "logaddexp": _logaddexp(torch.exp, 1),
    "logaddexp2": _logaddexp(torch.exp2, math.log(2)),
    "logit": _logit,
    "logsumexp.default": _logsumexp,
    "mish": lambda self: self * _softplus(self).tanh(),
    "mse_loss": lambda self, target, reduction=1: _reduced((self - target) ** 2, reduction),
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": multilabel_margin_loss,
    "mv": lambda self, vec: (self * vec).sum(1),
    "mvlgamma": _mvlgamma,
    "nan_to_num": _nan_to_num,
    "nansum": _nansum,
    "native_dropout_backward": lambda grad_output, mask, scale: grad_output * mask * scale,
    "norm": _norm,
    "rad2deg": lambda self: self * (180 / math.pi),
    "renorm": _renorm,
    "rsub": lambda self, other, alpha=1: other - scaled(self, alpha),
    "sgn": _sgn,
    "silu": lambda self: self * self.sigmoid(),
    "sinc": _sinc,
    "smooth_l1_loss": _smooth_l1_loss,
    "soft_margin_loss": lambda self, target, reduction=1: _reduced((-self * target).exp().log1p(), reduction),
    "softplus": _softplus,
    "softshrink": lambda self, lambd=0.5: torch.where(self > lambd, self - lambd, torch.where(self < -lambd, self + lambd, self * 0)),
    "special_entr": _entr,
    "special_log_ndtr": _log_ndtr,
    "special_xlog1py": _xlog(torch.log1p),
    "std.correction": _std,
    "std.correction_out": _std,
    "std.out": _std_unbiased,
    "std_mean.correction": _std_mean,
    "sum.default": lambda self, *, dtype=None: aten.sum.dim_IntList(self, dims_of(self, None), False, dtype=dtype),
    "threshold": lambda self, threshold, value: torch.where(self <= threshold, torch.tensor(value).to(self), self),
    "trace": lambda self: self.diagonal().sum(),
    "vdot": lambda self, other: (self.conj() * other).sum(0),
    "xlogy": _xlog(torch.log),
}  # fmt: skip
