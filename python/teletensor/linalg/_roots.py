"""The square root of a positive-definite matrix, and the polar decomposition."""

from __future__ import annotations

from typing import NamedTuple

from .. import _C
from .._C import Tensor
from . import _results as results
from ._eigen import eigh, svd

_torch = _C.torch


class Polar(NamedTuple):
    U: Tensor
    H: Tensor


def matrix_sqrth(A: Tensor) -> Tensor:
    """The positive-definite X with XX = A for symmetric or Hermitian positive-definite A. Reads A's lower triangle."""
    results.require_square(A, "linalg.matrix_sqrth")
    values, vectors = eigh(A)
    values = values.clamp_min(0)  # of a singular matrix, they may be below 0 by a rounding error
    return (vectors * values.sqrt().unsqueeze(-2)) @ vectors.transpose(-2, -1).conj()


def polar(A: Tensor) -> Polar:
    """U with orthonormal columns and positive-semidefinite H with UH = A, for A with at least as many rows as columns."""
    results.require_matrix(A, "linalg.polar")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"linalg.polar: expected at least as many rows as columns, got {list(A.shape)}")
    left, values, right = svd(A, full_matrices=False)
    back = right.transpose(-2, -1).conj()
    return Polar(left @ right, (back * values.unsqueeze(-2)) @ right)
