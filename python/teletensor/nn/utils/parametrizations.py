"""weight_norm and spectral_norm as parametrizations."""

from __future__ import annotations

from ... import _C
from ..._grad_mode import no_grad
from ..modules.module import Module
from .parametrize import register_parametrization
from .weight_norm import norm_except_dim

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None):
        super().__init__()
        self.dim = dim

    def forward(self, g, v):
        return v * (g / norm_except_dim(v, self.dim))

    def right_inverse(self, weight):
        return norm_except_dim(weight, self.dim), weight


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations: int, dim: int, eps: float):
        super().__init__()
        self.iterations, self.dim, self.eps = n_power_iterations, dim, eps
        if weight.dim() > 1:
            rows, columns = self._matrix(weight).shape
            make = {"dtype": weight.dtype, "device": weight.device}
            self.register_buffer("_u", self._normalized(_C.torch.randn(rows, **make)))
            self.register_buffer("_v", self._normalized(_C.torch.randn(columns, **make)))
            self._iterate(self._matrix(weight), 15)

    def _matrix(self, weight):
        return weight.transpose(0, self.dim).reshape(weight.shape[self.dim], -1)

    def _normalized(self, v):
        return v / v.norm().clamp_min(self.eps)

    def _iterate(self, matrix, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(self._normalized(matrix @ self._v))
                self._v.copy_(self._normalized(matrix.t() @ self._u))

    def forward(self, weight):
        if weight.dim() == 1:
            return self._normalized(weight)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.iterations)
        return weight / _C.torch.dot(self._u.clone(), matrix @ self._v.clone())

    def right_inverse(self, value):
        return value


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes the weight by its norms (original0) and directions (original1)."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def spectral_norm(module: Module, name="weight", n_power_iterations=1, eps=1e-12, dim: int | None = None) -> Module:
    """Divides the weight by its largest singular value."""
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    norm = _SpectralNorm(getattr(module, name).detach(), n_power_iterations, dim, eps)
    return register_parametrization(module, name, norm)
