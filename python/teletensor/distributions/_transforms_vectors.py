"""Transforms of vectors and matrices: to simplexes, Cholesky factors and positive definite matrices."""

from __future__ import annotations

import math

from .. import _C
from .._C import Size
from .._functions import finfo
from .._lazy import set_module
from ..linalg import cholesky
from . import constraints
from ._transform_types import Transform
from ._transforms_elementwise import clipped_sigmoid
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


def _check_dims(shape, count: int) -> None:
    if len(shape) < count:
        raise ValueError(f"Too few dimensions on input: expected {count} or more, got {len(shape)}")


def _one_then(x):
    """Shifts the last dimension by one: 1, followed by all elements but the last."""
    return _C.torch.cat([_C.torch.ones_like(x[..., :1]), x[..., :-1]], -1)


class SoftmaxTransform(Transform):
    """y = softmax(x) over the last dimension. Not bijective: adding a number to x does not change y."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def __eq__(self, other) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _check_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Breaks a stick of length 1 into n + 1 parts: part i is the fraction sigmoid(x[i] - log(n - i)) of the remainder.
    """

    bijective, domain, codomain = True, constraints.real_vector, constraints.simplex

    def __eq__(self, other) -> bool:
        return isinstance(other, StickBreakingTransform)

    @staticmethod
    def _offset(x):
        """log(n - i) for each i: x = 0 maps to equal parts."""
        return _C.torch.arange(x.shape[-1], 0, -1, device=x.device).to(x.dtype).log()

    def _call(self, x):
        fraction = clipped_sigmoid(x - self._offset(x))
        rest = (1 - fraction).cumprod(-1)
        one = _C.torch.ones_like(x[..., :1])
        return _C.torch.cat([fraction, one], -1) * _C.torch.cat([one, rest], -1)

    def _inverse(self, y):
        parts = y[..., :-1]
        # The rest can round to 0 or less if the last parts are close to 0.
        rest = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - rest.log() + self._offset(parts)

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x)
        # log(1 - sigmoid(x)) = logsigmoid(x) - x
        return (_C.functional.logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _check_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape):
        _check_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class CorrCholeskyTransform(Transform):
    """Maps a vector of length n (n - 1) / 2 to the Cholesky factor of an n x n correlation matrix.

    tanh(x), in row order below the diagonal, are the canonical partial correlations: each element of a row is a signed
    fraction of the remainder of the row's unit norm, and the diagonal element is the rest.
    """

    bijective, domain, codomain = True, constraints.real_vector, constraints.corr_cholesky

    def _call(self, x):
        limit = 1 - finfo(x.dtype).eps
        below = vec_to_tril_matrix(x.tanh().clamp(min=-limit, max=limit), diag=-1)
        rest = (1 - below.square()).sqrt().cumprod(-1)
        diagonal = _C.torch.eye(below.shape[-1], dtype=x.dtype, device=x.device)
        return (below + diagonal) * _one_then(rest)

    def _inverse(self, y):
        rest = _one_then(1 - y.square().cumsum(-1))
        return (tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        """log |dy/dx|, where y stands for its elements below the diagonal. `intermediates` is unused, as in PyTorch."""
        # The remainder before an element is the entry to its left. It is 1 before the first column, which adds nothing.
        rest = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2) if y.shape[-1] > 1 else y.new_zeros((*y.shape[:-2], 0))
        tanh = -2 * (x + _C.functional.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * rest.log().sum(-1) + tanh

    def forward_shape(self, shape):
        _check_dims(shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(f"Input is not a flattened lower-diagonal number: got a last dimension of {shape[-1]}")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape):
        _check_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: got matrices of {shape[-2]} x {shape[-1]}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class LowerCholeskyTransform(Transform):
    """Sets the elements above the diagonal to 0, and the diagonal to its exponential."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def __eq__(self, other) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x):
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """y = L L^T, where L is LowerCholeskyTransform's result."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def __eq__(self, other) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(cholesky(y))


set_module(
    "teletensor.distributions.transforms",
    CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform, SoftmaxTransform, StickBreakingTransform,
)  # fmt: skip
