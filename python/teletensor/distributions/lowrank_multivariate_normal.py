"""Multivariate normal distributions with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math

from .. import _C
from .._functions import broadcast_tensors
from ..linalg import cholesky, solve_triangular
from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(matrix):
    return matrix + _C.torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _batch_capacitance_tril(W, D):  # noqa: N803 - PyTorch's names
    """The Cholesky factor of I + W^T D^-1 W."""
    return cholesky(_plus_identity(W.mT / D.unsqueeze(-2) @ W))


def _batch_lowrank_logdet(W, D, capacitance_tril):  # noqa: N803
    """The logarithm of the determinant of W W^T + D, of which `W` is not needed."""
    del W
    return 2 * capacitance_tril.diagonal(0, -2, -1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):  # noqa: N803
    """x^T (W W^T + D)^-1 x."""
    return (x.square() / D).sum(-1) - _batch_mahalanobis(capacitance_tril, _batch_mv(W.mT / D.unsqueeze(-2), x))


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution of covariance W W^T + D, with W the cov_factor and D the cov_diag.

    Costs grow with the square of W's columns instead of the cube of its rows: by the matrix determinant lemma and
    Woodbury's identity, a Cholesky factor of the small matrix I + W^T D^-1 W suffices.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m, got {tuple(cov_factor.shape)}")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape ({n},), got {tuple(cov_diag.shape)}")
        try:
            columns = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_factor, self.cov_diag = columns[0][..., 0], columns[1], columns[2][..., 0]
        # Not broadcast, so that one factorisation serves the whole batch if the covariance is the same.
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(self.loc.shape[:-1], (n,), validate_args=validate_args)
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    def _scaled_factor(self):
        """W^T D^-1."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(LowRankMultivariateNormal, _instance)
        n, m = self.cov_factor.shape[-2:]
        new.loc, new.cov_diag = self.loc.expand(*batch_shape, n), self.cov_diag.expand(*batch_shape, n)
        new.cov_factor = self.cov_factor.expand(*batch_shape, n, m)
        new._unbroadcasted_cov_factor, new._unbroadcasted_cov_diag = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def _expand_matrix(self, matrix):
        return matrix.expand(*self.batch_shape, *self.event_shape, *self.event_shape)

    @lazy_property
    def variance(self):
        """The diagonal of the covariance."""
        return (self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag).expand(*self.batch_shape, *self.event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance, as D^1/2 chol(I + D^-1/2 W W^T D^-1/2), which is well conditioned."""
        deviations = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / deviations
        return self._expand_matrix(deviations * cholesky(_plus_identity(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self):
        """W W^T + D."""
        factor = self._unbroadcasted_cov_factor
        return self._expand_matrix(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance, by Woodbury's identity."""
        half = solve_triangular(self._capacitance_tril, self._scaled_factor(), upper=False)
        return self._expand_matrix((1 / self._unbroadcasted_cov_diag).diag_embed() - half.mT @ half)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        factors = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype, self.loc.device)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, factors) + self._unbroadcasted_cov_diag.sqrt() * noise

    def _log_det(self):
        return _batch_lowrank_logdet(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril)

    def _mahalanobis(self, diff):
        """diff^T covariance^-1 diff."""
        return _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, diff, self._capacitance_tril
        )

    def log_prob(self, value):
        self._validate_sample(value)
        distance = self._mahalanobis(value - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        entropy = 0.5 * (self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self.batch_shape)
