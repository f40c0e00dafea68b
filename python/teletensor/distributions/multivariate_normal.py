"""Multivariate normal distributions."""

from __future__ import annotations

import math

from .. import _C
from .._functions import broadcast_shapes
from ..linalg import cholesky, cholesky_ex, solve_triangular
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix, vector):
    """Products of matrices and vectors, both in batches."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, vector):
    """|factor^-1 vector|^2, with lower triangular factors. Both batches are broadcast."""
    batch = broadcast_shapes(factor.shape[:-2], vector.shape[:-1])
    n = factor.shape[-1]
    columns = vector.expand(*batch, n).unsqueeze(-1)
    return solve_triangular(factor.expand(*batch, n, n), columns, upper=False).square().sum((-2, -1))


def _valid_cholesky(matrix):
    """The Cholesky factor of a matrix that was found to be positive-definite: does not wait for the status."""
    return cholesky_ex(matrix).L


def _precision_to_scale_tril(precision, factorize=cholesky):
    """The Cholesky factor of the covariance. Factorises the precision with rows and columns in reverse order."""
    upper = factorize(precision.flip(-2, -1)).flip(-2, -1)
    identity = _C.torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_triangular(upper.mT, identity.expand_as(precision), upper=False)


class WithCovariance(Distribution):
    """A distribution whose constructor receives one of three matrices: covariance, precision or Cholesky factor."""

    def _set_factor(self, name: str, matrix) -> None:
        """Computes the factor. It is not broadcast, so that the batch shares one if the matrix is the same."""
        factorize = _valid_cholesky if self._validate_args else cholesky
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = factorize(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix, factorize)

    def _expand_matrices(self, new, batch_shape) -> None:
        """Gives a new distribution this one's matrices."""
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if (matrix := self.__dict__.get(name)) is not None:
                setattr(new, name, matrix.expand(*batch_shape, *matrix.shape[-2:]))

    def _expand_matrix(self, matrix):
        return matrix.expand(*self.batch_shape, *matrix.shape[-2:])

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance, for Wishart that of the normal vectors."""
        return self._expand_matrix(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)


class MultivariateNormal(WithCovariance):
    """The multivariate normal distribution, with a mean and a covariance, precision or Cholesky factor `scale_tril`."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if loc.dim() < 1 or matrix.dim() < 2:
            raise ValueError(f"loc must be at least one-dimensional, and {name} at least two-dimensional")
        n, batch_shape = loc.shape[-1], broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        self.loc = loc.expand(*batch_shape, n)
        setattr(self, name, matrix.expand(*batch_shape, n, n))
        super().__init__(batch_shape, (n,), validate_args=validate_args)
        self._set_factor(name, matrix)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self._unbroadcasted_scale_tril.square().sum(-1).expand(*self.batch_shape, *self.event_shape))

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        identity = _C.torch.eye(self.event_shape[0], dtype=factor.dtype, device=factor.device)
        inverse = solve_triangular(factor, identity.expand_as(factor), upper=False)
        return self._expand_matrix(inverse.mT @ inverse)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(MultivariateNormal, _instance)
        new.loc = self.loc.expand(*batch_shape, *self.event_shape)
        self._expand_matrices(new, batch_shape)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    def rsample(self, sample_shape=()):
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def entropy(self):
        entropy = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self.batch_shape)
