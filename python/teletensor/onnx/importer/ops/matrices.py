"""Products of matrices."""

from __future__ import annotations

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .._call import Call

Tensor = torch.Tensor


def _matmul(_call: Call, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.is_floating_point:
        return torch.matmul(a, b)
    return _exact(_wide(a), _wide(b)).to(a.dtype) if a.dtype != torch.uint64 else _exact(_wide(a), _wide(b)).view(a.dtype)


def _wide(x: Tensor) -> Tensor:
    """Integers as int64, whose sums and products have the lower bits of any type."""
    return x.view(torch.int64) if x.dtype == torch.uint64 else x.to(torch.int64)


def _exact(a: Tensor, b: Tensor) -> Tensor:
    """The product of int64 matrices, for which there is no library."""
    if a.dim() == 1:
        return _exact(a.unsqueeze(0), b).squeeze(-2 if b.dim() > 1 else 0)
    if b.dim() == 1:
        return _exact(a, b.unsqueeze(1)).squeeze(-1)
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def _gemm(call: Call, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    a = a.t() if call.get("transA", 0) else a
    whole = not a.dtype.is_floating_point
    if (
        not whole
        and alpha == 1.0
        and (c is None or beta == 1.0 and c.dim() == 1 and c.shape[0] == b.shape[0 if call.get("transB", 0) else 1])
    ):
        return F.linear(a, b if call.get("transB", 0) else b.t(), c)
    b = b.t() if call.get("transB", 0) else b
    if whole:
        return _whole_gemm(a, b, c, alpha, beta)
    found = torch.matmul(a, b)
    if alpha != 1.0:
        found = found * alpha
    if c is not None and beta != 0.0:
        found = found + (c if beta == 1.0 else c * beta)
    return found


def _whole_gemm(a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float) -> Tensor:
    """Integers: exact if the factors are whole, else by way of float64."""
    found = _exact(_wide(a), _wide(b))
    wide = None if c is None or beta == 0.0 else _wide(c)
    if alpha != int(alpha) or beta != int(beta):
        found = (found.to(torch.float64) * alpha + (0 if wide is None else wide.to(torch.float64) * beta)).to(torch.int64)
    else:
        found = found * int(alpha) + (0 if wide is None else wide * int(beta))
    return found.view(a.dtype) if a.dtype == torch.uint64 else found.to(a.dtype)


def _einsum(call: Call, *inputs: Tensor) -> Tensor:
    return torch.einsum(call.need("equation").replace(" ", ""), *inputs)


def _det(_call: Call, x: Tensor) -> Tensor:
    return torch.linalg.det(x)


TABLE: dict[str, tuple] = {
    "MatMul": ((1, _matmul),), "Gemm": ((1, _gemm),), "Einsum": ((12, _einsum),), "Det": ((11, _det),),
}  # fmt: skip
