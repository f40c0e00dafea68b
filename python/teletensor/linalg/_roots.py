"""The square root of a positive-definite matrix, and the polar decomposition. Imported at their first use.

Their gradients solve Sylvester equations, which have one solution for every positive-definite root. The gradients of
eigenvectors and singular vectors, from which the values are computed, have none where eigenvalues are equal.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import _C
from .._C import Tensor
from .._named_results import printed_as
from ..autograd.function import Function
from . import _results as results
from ._eigen import eigh, svd
from ._factors import solve


@printed_as("linalg_polar")
class Polar(NamedTuple):
    U: Tensor
    H: Tensor


def _root_parts(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The root of a symmetric or Hermitian matrix, and the root's eigenvalues and eigenvectors."""
    values, vectors = eigh(A)
    values = values.clamp_min(0).sqrt()  # of a singular matrix, they may be below 0 by a rounding error
    return (vectors * values.unsqueeze(-2)) @ vectors.transpose(-2, -1).conj(), values, vectors


def _polar_parts(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """U and H of polar(), and H's eigenvalues and eigenvectors."""
    left, values, right = svd(A, full_matrices=False)
    vectors = right.transpose(-2, -1).conj()
    return left @ right, (vectors * values.unsqueeze(-2)) @ right, values, vectors


def _adjoint(t: Tensor) -> Tensor:
    return t.transpose(-2, -1).conj()


class _Sylvester(Function):
    """The X with RX + XR = G for a Hermitian positive-definite R, whose eigenvalues and eigenvectors are given, too."""

    @staticmethod
    def forward(ctx, root: Tensor, right: Tensor, values: Tensor, vectors: Tensor) -> Tensor:
        back = _adjoint(vectors)
        inner = (back @ right @ vectors) / (values.unsqueeze(-1) + values.unsqueeze(-2))
        result = vectors @ inner @ back
        ctx.save_for_backward(root, values, vectors, result)
        return result

    @staticmethod
    def backward(ctx, grad: Tensor):
        root, values, vectors, result = ctx.saved_tensors
        # d(RX + XR) = dG. The operator X -> RX + XR is its own adjoint.
        right_grad = _Sylvester.apply(root, grad, values, vectors)
        root_grad = None
        if ctx.needs_input_grad[0]:
            root_grad = -(right_grad @ _adjoint(result) + _adjoint(result) @ right_grad)
        return root_grad, right_grad, None, None

    @staticmethod
    def jvp(ctx, root_tangent: Tensor | None, right_tangent: Tensor | None, *_) -> Tensor:
        root, values, vectors, result = ctx.saved_tensors
        change = 0 if right_tangent is None else right_tangent
        if root_tangent is not None:
            change = change - root_tangent @ result - result @ root_tangent
        return _Sylvester.apply(root, change, values, vectors)


class _Root(Function):
    """The positive-semidefinite root of a Hermitian matrix."""

    @staticmethod
    def forward(ctx, matrix: Tensor) -> Tensor:
        result, values, vectors = _root_parts(matrix)
        ctx.save_for_backward(result, values, vectors)
        return result

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        root, values, vectors = ctx.saved_tensors
        found = _Sylvester.apply(root, grad, values, vectors)
        return (found + _adjoint(found)) * 0.5

    @staticmethod
    def jvp(ctx, tangent: Tensor) -> Tensor:
        root, values, vectors = ctx.saved_tensors
        return _Sylvester.apply(root, (tangent + _adjoint(tangent)) * 0.5, values, vectors)


class _Polar(Function):
    """The factors U and H of a matrix with full column rank."""

    @staticmethod
    def forward(ctx, matrix: Tensor) -> tuple[Tensor, Tensor]:
        left, root, values, vectors = _polar_parts(matrix)
        ctx.save_for_backward(left, root, values, vectors)
        return left, root

    @staticmethod
    def backward(ctx, left_grad: Tensor, root_grad: Tensor) -> Tensor:
        left, root, values, vectors = ctx.saved_tensors
        # dU = U W + (I - U U^H) dA H^-1 and dH = U^H dA - W H, with the skew W of W H + H W = U^H dA - dA^H U.
        inner = _adjoint(left) @ left_grad
        root_grad = (root_grad + _adjoint(root_grad)) * 0.5
        turned = _Sylvester.apply(root, inner - root_grad @ root, values, vectors)
        result = left @ (turned - _adjoint(turned) + root_grad)
        if left.shape[-2] > left.shape[-1]:
            outside = left_grad - left @ inner
            result = result + solve(root, outside, left=False)
        return result

    @staticmethod
    def jvp(ctx, tangent: Tensor) -> tuple[Tensor, Tensor]:
        left, root, values, vectors = ctx.saved_tensors
        inner = _adjoint(left) @ tangent
        turned = _Sylvester.apply(root, inner - _adjoint(inner), values, vectors)
        left_tangent = left @ turned
        if left.shape[-2] > left.shape[-1]:
            left_tangent = left_tangent + solve(root, tangent - left @ inner, left=False)
        return left_tangent, inner - turned @ root


def _is_differentiated(A: Tensor) -> bool:
    """Whether a gradient, or a transform of torch.func, may need the derivative."""
    return A.requires_grad and _C.is_grad_enabled() or hasattr(A, "apply_function")


def matrix_sqrth(A: Tensor) -> Tensor:
    """The positive-definite X with XX = A for symmetric or Hermitian positive-definite A. Reads A's lower triangle."""
    results.require_square(A, "linalg.matrix_sqrth")
    return _Root.apply(A) if _is_differentiated(A) else _root_parts(A)[0]


def polar(A: Tensor) -> Polar:
    """U with orthonormal columns and positive-semidefinite H with UH = A, for A with at least as many rows as columns."""
    results.require_matrix(A, "linalg.polar")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"linalg.polar: expected at least as many rows as columns, got {list(A.shape)}")
    return Polar(*(_Polar.apply(A) if _is_differentiated(A) else _polar_parts(A)[:2]))
