"""Gradients of the square root and the polar decomposition of matrices.

They solve Sylvester equations, which have one solution for every positive-definite root. The gradients of eigenvectors and
singular vectors, from which the values are computed, have none where eigenvalues are equal.
"""

from __future__ import annotations

from .._C import Tensor
from ..linalg import _roots
from ..linalg._factors import solve
from .function import Function


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
        result, values, vectors = _roots.root_parts(matrix)
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
        left, root, values, vectors = _roots.polar_parts(matrix)
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


_roots.differentiable_root = _Root.apply
_roots.differentiable_polar = _Polar.apply
