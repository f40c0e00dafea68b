"""weight_norm and spectral_norm as parametrizations."""

from __future__ import annotations

from enum import Enum, auto

from ... import _C
from ..._grad_mode import no_grad
from ..modules.module import Module
from .parametrize import register_parametrization
from .weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, g, v):
        return v * (g / norm_except_dim(v, self.dim))

    def right_inverse(self, weight):
        return norm_except_dim(weight, self.dim), weight


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, {weight.dim() - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        dim = dim if dim >= 0 else dim + weight.dim()
        self.iterations, self.dim, self.eps = n_power_iterations, dim, eps
        if weight.dim() > 1:
            rows, columns = self._matrix(weight).shape
            make = {"dtype": weight.dtype, "device": weight.device}
            self.register_buffer("_u", self._normalized(_C.torch.randn(rows, **make)))
            self.register_buffer("_v", self._normalized(_C.torch.randn(columns, **make)))
            self._iterate(self._matrix(weight), 15)

    def _matrix(self, weight):
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def _normalized(self, v):
        return v / v.norm().clamp_min(self.eps)

    def _iterate(self, matrix, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(self._normalized(_C.torch.mv(matrix, self._v)))
                self._v.copy_(self._normalized(_C.torch.mv(matrix.mH, self._u)))

    def forward(self, weight):
        if weight.dim() == 1:
            return self._normalized(weight)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.iterations)
        return weight / _C.torch.dot(self._u.clone().conj(), _C.torch.mv(matrix, self._v.clone()))

    def right_inverse(self, value):
        return value


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes the weight by its norms (original0) and directions (original1). Loads also states with g and v."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, *rest) -> None:
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            originals = f"{prefix}parametrizations.{name}.original"
            state_dict[f"{originals}0"], state_dict[f"{originals}1"] = state_dict.pop(g), state_dict.pop(v)

    module._register_load_state_dict_pre_hook(rename)
    return module


def spectral_norm(module: Module, name="weight", n_power_iterations=1, eps=1e-12, dim: int | None = None) -> Module:
    """Divides the weight by its largest singular value."""
    if not isinstance(getattr(module, name, None), _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    norm = _SpectralNorm(getattr(module, name).detach(), n_power_iterations, dim, eps)
    return register_parametrization(module, name, norm)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _reflected(matrix):
    """The factor Q of matrix = Q R where the diagonal of R is positive. `matrix` has as many rows as columns, or more."""
    q, r = _linalg().qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows), as a function of an unconstrained matrix."""

    def __init__(self, weight, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):  # noqa: N803
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        if self.orthogonal_map is _OrthMaps.householder:
            lower = x.tril(-1)
            q = _linalg().householder_product(lower, 2.0 / (1.0 + (lower * lower).sum(-2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).detach().trunc().unsqueeze(-2)
        else:
            q = self._from_skew(x.tril())
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _from_skew(self, x):
        n, k = x.shape[-2:]
        if n != k:
            x = _C.torch.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], -1)
        skew = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            return _linalg().matrix_exp(skew)[..., :k]
        identity = _C.torch.eye(n, dtype=x.dtype, device=x.device)
        return _linalg().solve(identity - 0.5 * skew, identity + 0.5 * skew)[..., :k]

    @no_grad
    def right_inverse(self, Q):  # noqa: N803
        """The unconstrained matrix of an orthogonal matrix; other matrices are made orthogonal. May wait for the engine."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        n, k = q.shape[-2:]
        if hasattr(self, "base"):
            if n != k:
                q = _C.torch.cat([q, _C.torch.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)], -1)
            self.base = q.clone() if n == k and _is_orthogonal(q) else _reflected(q)
            return -_C.torch.eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device).expand(Q.shape).clone()
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        from ... import geqrf

        reflectors, tau = geqrf(q)
        signs = reflectors.diagonal(dim1=-2, dim2=-1).sgn()
        signs = _C.torch.where(tau == 0, -signs, signs)
        result = reflectors.clone()
        result.diagonal(dim1=-2, dim2=-1).copy_(signs)
        return result.mT if wide else result


def _linalg():
    from ... import linalg

    return linalg


def _is_orthogonal(q) -> bool:
    from ... import finfo

    n, k = q.shape[-2:]
    identity = _C.torch.eye(k, dtype=q.dtype, device=q.device)
    eps = 10.0 * n * finfo(q.dtype).eps
    return bool(((q.mH @ q - identity).abs() <= eps).all())


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True):
    """Parametrizes a matrix, or a batch of matrices, such that its columns (or rows, if there are fewer) are orthonormal.

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default "matrix_exp" for square and complex matrices,
            else "householder" (Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds", 2019).
        use_trivialization: multiplies the result by a fixed orthogonal matrix, the initial value.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    return register_parametrization(module, name, _Orthogonal(weight, chosen, use_trivialization=use_trivialization), unsafe=True)
