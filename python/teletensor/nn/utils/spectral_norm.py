"""Spectral normalisation: weights divided by their largest singular value (Miyato et al. 2018)."""

from __future__ import annotations

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..parameter import Parameter

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def _normalized(v: Tensor, eps: float) -> Tensor:
    return v / v.norm().clamp_min(eps)


class SpectralNorm:
    """The hook that computes the weight before each forward; `name_u` and `name_v` approximate the singular vectors."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with one row per index of `dim`."""
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module, iterate: bool) -> Tensor:
        """The weight divided by its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if iterate:
            with no_grad():
                still = matrix.detach()
                for _ in range(self.iterations):
                    v.copy_(_normalized(_C.torch.mv(still.t(), u), self.eps))
                    u.copy_(_normalized(_C.torch.mv(still, v), self.eps))
        # Copies, so that the next iteration does not modify tensors saved by this graph.
        return weight / _C.torch.dot(u.clone(), _C.torch.mv(matrix, v.clone()))

    def remove(self, module) -> None:
        """Makes the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for suffix in ("", "_orig", "_u", "_v"):
            delattr(module, self.name + suffix)
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None):
    """Trains `name_orig`; `name` is `name_orig` divided by its largest singular value."""
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    if any(isinstance(h, SpectralNorm) and h.name == name for h in module._forward_pre_hooks.values()):
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = getattr(module, name)
    rows, columns = hook.matrix(weight.detach()).shape
    delattr(module, name)
    module.register_parameter(name + "_orig", Parameter(weight.detach().clone(), weight.requires_grad))
    make = {"dtype": weight.dtype, "device": weight.device}
    module.register_buffer(name + "_u", _normalized(_C.torch.randn(rows, **make), eps))
    module.register_buffer(name + "_v", _normalized(_C.torch.randn(columns, **make), eps))
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module, name: str = "weight"):
    """Removes spectral_norm and keeps the current weight."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
