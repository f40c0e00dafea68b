"""Wishart distributions."""

from __future__ import annotations

import math
import numbers
import warnings

from .. import _C
from .._functions import broadcast_shapes, finfo
from ..linalg import slogdet
from ..linalg._torch_names import cholesky_solve
from . import constraints
from ._gamma_sampling import standard_gamma
from .exp_family import ExponentialFamily
from .multivariate_normal import WithCovariance
from .utils import _standard_normal, lazy_property, vec_to_tril_matrix

__all__ = ["Wishart"]


class Wishart(WithCovariance, ExponentialFamily):
    """The sum of df outer products of normal vectors, of a covariance, precision or Cholesky factor `scale_tril`."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict:
        """The constraints of the parameters; that of df depends on the dimension."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, numbers.Number):
            if df <= matrix.shape[-1] - 1:
                raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {matrix.shape[-1] - 1}.")
            if df < matrix.shape[-1]:
                warnings.warn("Low df values detected: singular samples are likely for ndim - 1 < df < ndim.", stacklevel=2)
            df = _C.tensor(float(df), dtype=matrix.dtype, device=matrix.device)
        batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand(*batch_shape, *matrix.shape[-2:]))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._set_factor(name, matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(Wishart, _instance)
        new.df = self.df.expand(batch_shape)
        self._expand_matrices(new, batch_shape)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        identity = _C.torch.eye(self.event_shape[-1], dtype=factor.dtype, device=factor.device)
        return self._expand_matrix(cholesky_solve(identity.expand_as(factor), factor))

    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self):
        factor = self.df - self.event_shape[-1] - 1
        return _C.torch.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(0, -2, -1)
        return self.df[..., None, None] * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Draws samples by the Bartlett decomposition.

        Unlike PyTorch, does not read the samples to replace singular ones, so that `max_try_correction` must be None.
        The clamped diagonal of the factor keeps samples from being exactly singular before rounding.
        """
        if max_try_correction is not None:
            raise NotImplementedError("max_try_correction is not supported: singular samples are not drawn again")
        p, dtype, device = self.event_shape[-1], self._unbroadcasted_scale_tril.dtype, self._unbroadcasted_scale_tril.device
        shape = (*sample_shape, *self.batch_shape)
        # The diagonal's squares are chi-squared variables of df, df - 1, ... degrees of freedom.
        freedom = self.df.unsqueeze(-1) - _C.torch.arange(p, device=device)
        diagonal = (2 * standard_gamma(freedom / 2, (*shape, p))).sqrt().clamp_min(finfo(dtype).eps)
        noise = diagonal.diag_embed()
        if p > 1:
            below = _standard_normal((*shape, p * (p - 1) // 2), dtype, device)
            noise = noise + vec_to_tril_matrix(below, diag=-1)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def _half_log_det(self):
        """log det of the covariance / 2, and p log(2) / 2."""
        return self.event_shape[-1] * math.log(2) / 2 + self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        nu, p = self.df, self.event_shape[-1]
        batch = broadcast_shapes(value.shape, self._unbroadcasted_scale_tril.shape)
        solved = cholesky_solve(value.expand(batch), self._unbroadcasted_scale_tril.expand(batch))
        trace = solved.diagonal(0, -2, -1).sum(-1)
        norm = nu * self._half_log_det() + _C.torch.mvlgamma(nu / 2, p)
        return (nu - p - 1) / 2 * slogdet(value)[1] - trace / 2 - norm

    def entropy(self):
        nu, p = self.df, self.event_shape[-1]
        digamma = (nu.unsqueeze(-1) / 2 - _C.torch.arange(p, device=nu.device) / 2).digamma().sum(-1)
        constant = (p + 1) * self._half_log_det() + _C.torch.mvlgamma(nu / 2, p)
        return constant - (nu - p - 1) / 2 * digamma + nu * p / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self.event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self.event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - slogdet(-2 * x)[1]) + _C.torch.mvlgamma(half, p)
