"""Multivariate normal distributions."""

from __future__ import annotations

import math

from .. import _C
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal

__all__ = ["MultivariateNormal"]


def _cholesky(matrix):
    """Cholesky factors of matrices, by the Cholesky-Banachiewicz algorithm. Composed of differentiable operators."""
    n = matrix.shape[-1]
    rows: list = []
    for i in range(n):
        row: list = []
        for j in range(i + 1):
            residual = matrix[..., i, j]
            for k in range(j):
                residual = residual - row[k] * (rows[j][k] if j < i else row[k])
            row.append(residual.sqrt() if i == j else residual / rows[j][j])
        rows.append(row)
    zero = _C.torch.zeros_like(rows[0][0])
    return _C.torch.stack([_C.torch.stack(row + [zero] * (n - len(row)), -1) for row in rows], -2)


def _solve_lower(matrix, vector):
    """Solves matrix x = vector by forward substitution."""
    solution: list = []
    for i in range(matrix.shape[-1]):
        residual = vector[..., i]
        for j in range(i):
            residual = residual - matrix[..., i, j] * solution[j]
        solution.append(residual / matrix[..., i, i])
    return _C.torch.stack(solution, -1)


class MultivariateNormal(Distribution):
    """The multivariate normal distribution, with a mean and a covariance, precision or Cholesky factor `scale_tril`."""

    arg_constraints = {"loc": constraints.real_vector, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [m for m in (covariance_matrix, scale_tril, precision_matrix) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if loc.dim() < 1 or given[0].dim() < 2:
            raise ValueError("loc must be at least one-dimensional, and the matrix at least two-dimensional")
        if scale_tril is None:
            scale_tril = _cholesky(covariance_matrix) if precision_matrix is None else self._from_precision(precision_matrix)
        batch_shape = (
            _C.torch.empty(loc.shape[:-1], device="meta") + _C.torch.empty(scale_tril.shape[:-2], device="meta")
        ).shape
        n = loc.shape[-1]
        self.loc, self.scale_tril = loc.expand(*batch_shape, n), scale_tril.expand(*batch_shape, n, n)
        super().__init__(batch_shape, (n,), validate_args=validate_args)

    @staticmethod
    def _from_precision(precision):
        """The Cholesky factor of the covariance. Factorises the precision with rows and columns in reverse order."""
        reverse = lambda m: m.flip(-2, -1)  # noqa: E731
        lower = reverse(_cholesky(reverse(precision))).transpose(-2, -1)
        n = precision.shape[-1]
        eye = _C.torch.eye(n, dtype=precision.dtype, device=precision.device)
        columns = [_solve_lower(lower, eye[:, i].expand(precision.shape[:-1])) for i in range(n)]
        return _C.torch.stack(columns, -1)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.scale_tril**2).sum(-1))
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.transpose(-2, -1))

    def expand(self, batch_shape, _instance=None):
        n = self.event_shape[0]
        factor = self.scale_tril.expand(*batch_shape, n, n)
        return MultivariateNormal(self.loc.expand(*batch_shape, n), scale_tril=factor, validate_args=False)

    def rsample(self, sample_shape=()):
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + (self.scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        diff = value - self.loc
        distance = (_solve_lower(self.scale_tril, diff) ** 2).sum(-1)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def _half_log_det(self):
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def entropy(self):
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
