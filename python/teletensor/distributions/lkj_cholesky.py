"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math

from .. import _C
from .._functions import finfo
from .._grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .gamma import Beta
from .utils import _standard_normal, broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices with density det^(concentration - 1) (Lewandowski et al. 2009)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self._arguments = {"concentration": concentration}
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        self._beta = self._row_lengths()

    def _row_lengths(self) -> Beta:
        """For each row, the distribution of the squared norm of the elements left of the diagonal.

        For row i, counted from 0, Beta(i / 2, concentration + (dim - 1 - i) / 2), as log_prob implies. PyTorch 2.15 draws
        from Beta(i - 1 / 2, ...), which is another distribution for dim > 2.
        """
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        index = _C.torch.arange(-1, self.dim - 1, **like).clamp_min(0)
        remaining = (self.concentration + 0.5 * (self.dim - 2)).unsqueeze(-1) - 0.5 * index
        return Beta(0.5 * index + 0.5, remaining, validate_args=False)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(LKJCholesky, _instance)
        new.dim, new.concentration = self.dim, self.concentration.expand(batch_shape)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        new._beta = new._row_lengths()
        return new

    def sample(self, sample_shape=()):
        """The onion method: each row has a random direction and a random length; the diagonal element completes it to a
        unit vector.
        """
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = _standard_normal(self._extended_shape(sample_shape), squares.dtype, squares.device).tril(-1)
            tiny = finfo(normal.dtype).tiny
            # The first row is 0, and so is its norm.
            rows = squares.sqrt() * normal / normal.square().sum(-1, True).sqrt().clamp_min(tiny)
            diagonal = (1 - rows.square().sum(-1)).clamp_min(tiny).sqrt()
            return rows + diagonal.diag_embed()

    def log_prob(self, value):
        self._validate_sample(value)
        n, concentration = self.dim, self.concentration
        # The determinant is the squared product of the diagonal; n - i more factors are the Jacobian of L -> L L^T.
        rows = _C.torch.arange(2, n + 1, device=concentration.device)
        powers = 2 * (concentration - 1).unsqueeze(-1) + n - rows
        density = (powers * value.diagonal(0, -2, -1)[..., 1:].log()).sum(-1)
        alpha = concentration + 0.5 * (n - 1)
        norm = 0.5 * (n - 1) * math.log(math.pi) + _C.torch.mvlgamma(alpha - 0.5, n - 1) - (n - 1) * alpha.lgamma()
        return density - norm
