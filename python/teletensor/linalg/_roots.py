"""The square root of a positive-definite matrix, and the polar decomposition."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import _C
from .._C import Tensor
from .._named_results import printed_as
from . import _results as results
from ._eigen import eigh, svd

_torch = _C.torch


@printed_as("linalg_polar")
class Polar(NamedTuple):
    U: Tensor
    H: Tensor


def root_parts(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The root of a symmetric or Hermitian matrix, and the root's eigenvalues and eigenvectors."""
    values, vectors = eigh(A)
    values = values.clamp_min(0).sqrt()  # of a singular matrix, they may be below 0 by a rounding error
    return (vectors * values.unsqueeze(-2)) @ vectors.transpose(-2, -1).conj(), values, vectors


def polar_parts(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """U and H of polar(), and H's eigenvalues and eigenvectors."""
    left, values, right = svd(A, full_matrices=False)
    vectors = right.transpose(-2, -1).conj()
    return left @ right, (vectors * values.unsqueeze(-2)) @ right, values, vectors


# autograd/_matrix_roots.py replaces both by functions with gradients that also exist for equal eigenvalues.
differentiable_root: Callable[[Tensor], Tensor] = lambda A: root_parts(A)[0]  # noqa: E731
differentiable_polar: Callable[[Tensor], tuple[Tensor, Tensor]] = lambda A: polar_parts(A)[:2]  # noqa: E731


def _is_differentiated(A: Tensor) -> bool:
    """Whether a gradient, or a transform of torch.func, may need the derivative."""
    return A.requires_grad and _C.is_grad_enabled() or hasattr(A, "apply_function")


def matrix_sqrth(A: Tensor) -> Tensor:
    """The positive-definite X with XX = A for symmetric or Hermitian positive-definite A. Reads A's lower triangle."""
    results.require_square(A, "linalg.matrix_sqrth")
    return differentiable_root(A) if _is_differentiated(A) else root_parts(A)[0]


def polar(A: Tensor) -> Polar:
    """U with orthonormal columns and positive-semidefinite H with UH = A, for A with at least as many rows as columns."""
    results.require_matrix(A, "linalg.polar")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"linalg.polar: expected at least as many rows as columns, got {list(A.shape)}")
    return Polar(*(differentiable_polar(A) if _is_differentiated(A) else polar_parts(A)[:2]))
