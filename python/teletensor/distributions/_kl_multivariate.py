"""Divergences between multivariate normal distributions, with full or low-rank covariances."""

from __future__ import annotations

from .._functions import broadcast_shapes
from ..linalg import solve_triangular
from ._kl_registry import register_kl
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis


def _check_events(p, q) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two multivariate normals with different event shapes cannot be computed: got "
            f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )


def _solve(factor, columns):
    """factor^-1 columns, with both batches broadcast."""
    batch = broadcast_shapes(factor.shape[:-2], columns.shape[:-2])
    return solve_triangular(factor.expand(*batch, *factor.shape[-2:]), columns.expand(*batch, *columns.shape[-2:]), upper=False)


def _square_sum(matrix):
    """trace(X X^T)."""
    return matrix.square().sum((-2, -1))


def _trace_in_low_rank(q, columns):
    """trace(covariance_q^-1 X X^T), by Woodbury's identity."""
    small = _solve(q._capacitance_tril, q._scaled_factor() @ columns)
    return _square_sum(columns / q._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)) - _square_sum(small)


def _from_terms(p, log_det_ratio, trace, distance):
    return 0.5 * (log_det_ratio + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _full_full(p, q):
    _check_events(p, q)
    trace = _square_sum(_solve(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return _from_terms(p, 2 * (q._half_log_det() - p._half_log_det()), trace, distance)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_full(p, q):
    _check_events(p, q)
    columns = _square_sum(_solve(q._unbroadcasted_scale_tril, p._unbroadcasted_cov_factor))
    trace = columns + _square_sum(_solve(q._unbroadcasted_scale_tril, p._unbroadcasted_cov_diag.sqrt().diag_embed()))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return _from_terms(p, 2 * q._half_log_det() - p._log_det(), trace, distance)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low(p, q):
    _check_events(p, q)
    distance = q._mahalanobis(q.loc - p.loc)
    trace = _trace_in_low_rank(q, p._unbroadcasted_scale_tril)
    return _from_terms(p, q._log_det() - 2 * p._half_log_det(), trace, distance)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_low(p, q):
    _check_events(p, q)
    trace = _trace_in_low_rank(q, p._unbroadcasted_cov_factor) + _trace_in_low_rank(q, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    return _from_terms(p, q._log_det() - p._log_det(), trace, q._mahalanobis(q.loc - p.loc))
