"""Functions of C++ that composites call (engine/composites), on mapped tensors.

vmap computes a composite from the operators that its declaration calls. These functions call the same operators as theirs in C++, so that
the bits are equal where the operators' are.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import broadcast_tensors, iinfo
from ._batch_call import NoRule

_ops = _C.ops
_FLOAT32_MAX = 3.4028234663852886e38


def add_product(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if not (product.is_floating_point() or product.is_complex()):  # drops the fractions of factors
        if isinstance(beta, complex) or isinstance(alpha, complex):
            raise NoRule  # raises the operator's error
        beta, alpha = int(beta), int(alpha)
    return _added(x, product, beta, alpha)


def _add_outer(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if x.dtype == product.dtype == _C.bool:
        beta, alpha = bool(beta), bool(alpha)
    return _added(x, product, beta, alpha)


def _added(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (x if beta == 1 else x * beta) + product


def reduce_loss(losses: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "mean", "sum"):
        raise NoRule  # raises the operator's error
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _stored_as(losses: Tensor, like: Tensor) -> Tensor:
    return losses if losses.dtype == like.dtype else losses.to(like.dtype)


def _distance(x: Tensor, target: Tensor) -> Tensor:
    return (x - target).abs() if x.is_complex() or target.is_complex() else _ops.absolute_difference(x, target)


def _huber(x: Tensor, target: Tensor, delta: float) -> Tensor:
    if delta > (sys.float_info.max if _C.float64 in (x.dtype, target.dtype) else _FLOAT32_MAX):
        raise NoRule
    return _ops.smooth_difference(x, target, delta, delta)


def _bce_with_logits(x: Tensor, target: Tensor, pos_weight: Tensor | None) -> Tensor:
    negative, rest = _ops.logsigmoid(x), (1 - target) * x
    return rest - negative if pos_weight is None else rest - ((pos_weight - 1) * target + 1) * negative


def _gaussian_loss(x: Tensor, target: Tensor, var: Tensor, full: bool, eps: float) -> Tensor:
    losses = _ops.gaussian_nll(x, target, _ops.at_least(var, eps))
    return losses + 0.5 * math.log(2 * math.pi) if full else losses


def _poisson_loss(x: Tensor, target: Tensor, log_input: bool, full: bool, eps: float) -> Tensor:
    losses = _ops.poisson_nll(x, target) if log_input else _ops.poisson_nll_of_rate(x, target, eps)
    return losses + _ops.stirling(target) if full else losses


def _kl_divergence(x: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    losses = target.exp() * (target - x) if log_target else _ops.xlogy(target, target) - target * x
    return losses.sum() / x.shape[0] if reduction == "batchmean" else reduce_loss(losses, reduction)


def _cosine_embedding(x: Tensor, y: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    if not (x.is_floating_point() and y.is_floating_point()):
        raise NoRule
    squares = [(t * t).sum(-1) + 1e-12 for t in (x, y)]
    cosine = (x * y).sum(-1) / (squares[0] * squares[1]).sqrt()
    unlike = _C.torch.where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return reduce_loss(_C.torch.where(target == 1, 1 - cosine, unlike), reduction)


def _cosine(x: Tensor, y: Tensor, dim: int, eps: float) -> Tensor:
    product, dtype = x * y, _C.promote_types(x.dtype, y.dtype)
    lengths = [_ops.vector_norm(t.to(dtype).expand(product.shape), 2.0, [dim]).clamp(min=eps) for t in (x, y)]
    return product.sum([dim]) / (lengths[0] * lengths[1])


def _triplet_margin(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool) -> Tensor:
    near, far = _ops.pairwise_distance(anchor, positive, p, eps), _ops.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = _C.torch.minimum(far, _ops.pairwise_distance(positive, negative, p, eps))
    return (near - far + margin).clamp(min=0)


def _quantiles(x: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    flattens, ndim = dim is None or x.dim() == 0, x.dim()
    x = x.reshape(-1) if flattens else x.movedim(dim, -1)
    n = x.shape[-1]
    ordered = x.sort(-1)[0]
    missing, share = ordered.isnan(), q.reshape(-1)
    if ignore_nan:
        rank = (((~missing).sum([-1], keepdim=True) - 1).to(x.dtype) * share).clamp(min=0.0)
    else:
        wide = (share * float(n - 1)).expand(*x.shape[:-1], share.numel())
        rank = wide.masked_fill(missing.any(-1, keepdim=True), float(n - 1))
    if interpolation == "nearest":
        rank = _ops.round_half_even(rank)
    low, high = rank.floor(), rank.ceil()
    at_low, at_high = (ordered.gather(-1, r.to(_C.int64)) for r in (low, high))
    if interpolation in ("higher", "lower", "nearest"):
        value = at_high if interpolation == "higher" else at_low
    else:
        part = (high != low) * 0.5 if interpolation == "midpoint" else rank - low
        value = _C.torch.lerp(at_low, at_high, part.to(x.dtype))
    if keepdim and not flattens:
        value = value.unsqueeze(-1).movedim(-1, dim % ndim)
    value = value.movedim(-1, 0)
    if keepdim and flattens:
        value = value.reshape(value.shape[0], *[1] * ndim)
    return value.squeeze(0) if q.dim() == 0 else value


def _bilinear_form(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out, n1, n2 = weight.shape
    products = (x @ weight.permute(1, 0, 2).reshape(n1, out * n2)).reshape(*x.shape[:-1], out, n2)
    products = products * y.unsqueeze(-2)
    result = products.sum([-1], dtype=products.dtype)
    return result if bias is None else result + bias


def _pairwise_distances(x: Tensor, y: Tensor, p: float, compute_mode: str | None) -> Tensor:
    never = compute_mode == "donot_use_mm_for_euclid_dist"
    always = compute_mode == "use_mm_for_euclid_dist"
    if p == 2 and not never and (always or max(x.shape[-2], y.shape[-2]) > 25):
        raise NoRule  # by a product, whose rounding depends on the sizes
    differences = x.unsqueeze(-2) - y.unsqueeze(-3)
    return _ops.chebyshev_norm(differences, [-1]) if math.isinf(p) else _ops.vector_norm(differences, p, [-1])


def _trapezoids(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    n = y.shape[dim]
    rest = max(n - 1, 0)
    means = (y.narrow(dim, n - rest, rest) + y.narrow(dim, 0, rest)) / 2
    if x is None:
        return means * dx
    if x.dim() != 1:
        return means * x.diff(dim=dim)
    sizes = [1] * y.dim()
    sizes[dim] = rest
    return means * x.diff().reshape(sizes)


def _trapezoid_sum(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    if y.dtype in (_C.float16, _C.bfloat16):
        raise NoRule  # rounds in each step
    return _trapezoids(y, x, dx, dim).sum([dim])


def gru_state(entered: Tensor, kept: Tensor, hx: Tensor) -> Tensor:
    """The next state of a GRU, from the products of its input and of its state with the weights."""
    new, old = entered.chunk(3, -1), kept.chunk(3, -1)
    reset, update = (new[0] + old[0]).sigmoid(), (new[1] + old[1]).sigmoid()
    return _C.torch.lerp(_C.torch.addcmul(new[2], reset, old[2]).tanh(), hx, update)


def lstm_states(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next states h and c of an LSTM."""
    enter, forget, candidate, exit_gate = gates.chunk(4, -1)
    state = _ops.lstm_state(enter, forget, candidate, cell)
    return _ops.lstm_exit(exit_gate, state), state


def _gru_step(product: Tensor, hx: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Tensor:
    return gru_state(product, _ops.linear(hx, w_hh, b_hh), hx)


def _lstm_step(product: Tensor, hx: list, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> list[Tensor]:
    output, state = lstm_states(product + _ops.linear(hx[0], w_hh, b_hh), hx[1])
    return [output if w_hr is None else _ops.linear(output, w_hr, None), state]


def _is_member(elements: Tensor, tested: Tensor, invert: bool) -> Tensor:
    if tested.numel() == 0:
        raise NoRule
    common = _C.promote_types(elements.dtype, tested.dtype)
    candidates, values = tested.reshape(-1).sort()[0].to(common), elements.reshape(-1).to(common)
    place = _ops.searchsorted(candidates, values).clamp(max=candidates.numel() - 1)
    found = (candidates.index_select(0, place) == values).reshape(elements.shape)
    return ~found if invert else found


def _multivariate_lgamma(x: Tensor, p: int) -> Tensor:
    total = x.lgamma()
    for i in range(1, p):
        total = total + (x - i / 2).lgamma()
    return total + p * (p - 1.0) / 4 * math.log(math.pi)


def _channel_weight(weight: Tensor, x: Tensor) -> Tensor:
    if weight.numel() == 1 or x.dim() < 2:
        return weight.reshape([] if weight.numel() == 1 else weight.shape)
    return weight.reshape([1, -1, *[1] * (x.dim() - 2)])


def _rotate_90(x: Tensor, k: int, dims: list[int]) -> Tensor:
    if k % 4 == 2:
        return x.flip(dims)
    return x.clone() if k % 4 == 0 else x.flip([dims[1] if k % 4 == 1 else dims[0]]).transpose(dims[0], dims[1])


def _expand_index(index: Tensor, source: Tensor, dim: int) -> Tensor:
    if source.dim() == 0:
        return index.reshape([])
    sizes = [1] * source.dim()
    sizes[dim] = index.numel()
    return index.reshape(sizes).expand(source.shape)


def _identity(reduce: str, dtype: Any) -> Any:
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    limits = None if dtype.is_floating_point else iinfo(dtype)
    low, high = (-math.inf, math.inf) if limits is None else (limits.min, limits.max)
    return low if reduce == "amax" else high


def _scatter_with_reduction(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    if reduce not in ("sum", "mean", "prod", "amax", "amin") or x.dtype == _C.bool or x.dim() == 0:
        raise NoRule
    base = x if include_self else _ops.scatter_value(x, dim, index, _identity(reduce, x.dtype))
    if reduce not in ("sum", "mean"):
        return _ops.scatter_combine(base, dim, index, src, reduce)
    total = _ops.scatter_add(base, dim, index, src)
    if reduce == "sum":
        return total
    start = _C.torch.ones_like(x)
    start = start if include_self else _ops.scatter_value(start, dim, index, 0)
    counts = _ops.scatter_add(start, dim, index, _C.torch.ones_like(src))
    divisor = counts.masked_fill(counts == 0, 1)
    return total / divisor if x.is_floating_point() or x.is_complex() else _C.torch.floor_divide(total, divisor)


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    ndim = max(a.dim(), b.dim())
    left, right = ([1] * (ndim - t.dim()) + list(t.shape) for t in (a, b))
    product = a.reshape([n for size in left for n in (size, 1)]) * b.reshape([n for size in right for n in (1, size)])
    return product.reshape([m * n for m, n in zip(left, right)])


def _histogram_counts(x: Tensor, bins: int, low: float, high: float) -> Tensor:
    x = x.detach().reshape(-1)
    if x.numel() == 0 or low != high and (math.isinf(low) or math.isinf(high)):
        raise NoRule
    none = _C.torch.zeros([bins], dtype=x.dtype, device=x.device)
    least, most = (x.amin(0, keepdim=True), x.amax(0, keepdim=True)) if low == high else (
        _C.torch.full([1], bound, dtype=x.dtype, device=x.device) for bound in (low, high)
    )  # fmt: skip
    if low == high:  # a range of no length is extended by one on both sides
        same = (least == most).to(x.dtype)
        least, most = least - same, most + same
    inside = (x >= least) & (x <= most)
    part = ((x - least) / (most - least) * bins).masked_fill(~inside, 0.0)
    return _ops.scatter_add(none, 0, part.to(_C.int64).clamp(0, bins - 1), inside.to(x.dtype))


def _scatter_masked(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    x, mask = broadcast_tensors(x, mask)
    if source.numel() < x.numel() or x.numel() == 0:
        raise NoRule  # the mask's values decide whether there are enough elements
    places = (mask.reshape(-1).cumsum(0) - 1).clamp(min=0)
    return _C.torch.where(mask, source.reshape(-1).index_select(0, places).reshape(x.shape), x)


def covariance(x: Tensor, correction: int, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    dtype = x.dtype if x.is_floating_point() or x.is_complex() else _C.default_dtype()
    dtype = dtype if aweights is None or aweights.dim() == 0 else _C.promote_types(dtype, aweights.dtype)
    rows = (x.reshape(1, x.numel()) if x.dim() < 2 else x).to(dtype)
    if aweights is not None and aweights.dim() == 0:  # which may have a wider dtype than the result
        aweights = aweights.to(dtype.to_real())
    if fweights is None and aweights is None:
        centered = scaled = rows - rows.mean([1], True)
        freedom: Any = max(float(rows.shape[1]) - correction, 0.0)
    else:
        both = fweights if aweights is None else aweights if fweights is None else fweights * aweights
        weights = both.reshape(-1)
        total = weights.sum()
        centered = rows - (rows * weights).sum([1], True) / total
        scaled, freedom = centered * weights, total - correction
        if aweights is not None and correction != 0:
            freedom = total - (weights * aweights.reshape(-1)).sum() * correction / total
        freedom = freedom.clamp(min=0)
    result = scaled @ centered.transpose(0, 1).conj() / freedom
    return result.reshape([]) if rows.shape[0] == 1 else result


def correlation(x: Tensor) -> Tensor:
    c = covariance(x, 1)
    if c.dim() == 0:
        return c / c
    deviations = c.diagonal().clone().sqrt()
    scaled = c / deviations.unsqueeze(1) / deviations.unsqueeze(0)
    if scaled.is_complex():
        return _C.torch.complex(scaled.real.clamp(-1, 1), scaled.imag.clamp(-1, 1))
    return scaled.clamp(-1, 1)


def vandermonde(x: Tensor, columns: int | None, increasing: bool) -> Tensor:
    powers = _C.torch.arange(x.numel() if columns is None else columns, device=x.device)
    return x.unsqueeze(-1) ** (powers if increasing else powers.flip([0]))


def _all_but(x: Tensor, dim: int) -> list[int]:
    return [d for d in range(x.dim()) if d != dim % x.dim()]


def _renormalize(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    single = _C.float32 if x.dtype in (_C.float16, _C.bfloat16) else None
    norms = _ops.vector_norm(x, float(p), _all_but(x, dim), True, dtype=single)
    factor = _C.torch.where(norms > maxnorm, maxnorm / (_C.torch.where(norms > maxnorm, norms, 1.0) + 1e-7), 1.0)
    return x * (factor if x.is_complex() else factor.to(x.dtype))


def slice_norms(v: Tensor, order: int, dim: int) -> Tensor:
    if dim == -1:
        return _ops.vector_norm(v, float(order))
    rest = _all_but(v, dim) if v.dim() else []
    return _ops.vector_norm(v, float(order), rest, True) if rest else v.abs()


def _multi_margin(x: Tensor, target: Tensor, p: int, margin: float, weight: Tensor | None) -> Tensor:
    rows, classes = x if x.dim() == 2 else x.reshape(1, -1), target.reshape(-1, 1)
    gaps = _ops.shifted_difference(rows, rows.gather(1, classes), margin).clamp(min=0)
    gaps = gaps.square() if p == 2 else gaps
    if weight is not None:
        gaps = gaps * weight.detach().index_select(0, target.reshape(-1)).unsqueeze(1)  # the loss has no derivative by it
    return (_ops.scatter_value(gaps, 1, classes, 0.0).sum([1]) / rows.shape[1]).reshape(target.shape)


def _multilabel_margin(x: Tensor, target: Tensor) -> Tensor:
    rows, labels = (t if x.dim() == 2 else t.reshape(1, -1) for t in (x, target))
    precede, indices = (labels >= 0).to(_C.int64).cumprod(1), labels.masked_fill(labels == -1, 0)
    counts = _ops.scatter_add(_C.torch.zeros_like(rows, dtype=_C.int64), 1, indices, precede)
    counted = (precede.unsqueeze(2) != 0) & (counts == 0).unsqueeze(1)
    gaps = _ops.shifted_difference(rows.unsqueeze(1), rows.gather(1, indices).unsqueeze(2), 1.0).clamp(min=0)
    losses = gaps.masked_fill(~counted, 0.0).sum([1, 2]) / rows.shape[1]
    return losses if x.dim() == 2 else losses.reshape([])


def _none() -> Any:
    raise NoRule


# By their names in declarations.
FUNCTIONS: dict[str, Callable] = {
    "add_product": add_product,
    "add_outer": _add_outer,
    "reduce_loss": reduce_loss,
    "apply_weight": lambda losses, weight: losses if weight is None else losses * weight,
    "given_or": lambda value, default: default if value is None else value,
    "first_half": lambda x, dim: x.chunk(2, dim)[0],
    "second_half": lambda x, dim: x.chunk(2, dim)[1],
    "inner_product": lambda a, b: _ops.matmul(a, b.transpose(-1, -2)) if a.dim() and b.dim() > 1 else _none(),
    "stored_as": _stored_as, "distance": _distance, "huber": _huber, "bce_with_logits": _bce_with_logits,
    "gaussian_loss": _gaussian_loss, "poisson_loss": _poisson_loss, "kl_divergence": _kl_divergence,
    "cosine_embedding": _cosine_embedding, "cosine": _cosine, "triplet_margin": _triplet_margin, "quantiles": _quantiles,
    "bilinear_form": _bilinear_form, "pairwise_distances": _pairwise_distances, "trapezoids": _trapezoids,
    "trapezoid_sum": _trapezoid_sum, "gru_step": _gru_step, "lstm_step": _lstm_step, "is_member": _is_member,
    "multivariate_lgamma": _multivariate_lgamma, "channel_weight": _channel_weight, "rotate_90": _rotate_90,
    "expand_index": _expand_index, "scatter_with_reduction": _scatter_with_reduction, "kronecker": _kronecker,
    "at_least_2d": lambda tensors: [t.reshape(1, -1) if t.dim() < 2 else t for t in tensors], "histogram_counts": _histogram_counts,
    "scatter_masked": _scatter_masked, "covariance": covariance, "correlation": correlation, "vandermonde": vandermonde,
    "renormalize": _renormalize, "slice_norms": slice_norms, "multi_margin": _multi_margin, "multilabel_margin": _multilabel_margin,
}  # fmt: skip
