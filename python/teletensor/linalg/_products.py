"""Products and powers of matrices, and tensor equations."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._integers import is_int
from .._ops.out_variant import out_variant
from . import _results as results
from ._factors import inv, solve

_torch = _C.torch

matmul, matrix_exp = _torch.matmul, _torch.matrix_exp


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-th power; a negative n raises the inverse to the power -n."""
    results.require_square(A, "linalg.matrix_power")
    if n == 0:
        zeros = A.masked_fill(_torch.ones((), dtype=_C.bool, device=A.device), 0)  # has a gradient, of zeros
        return zeros + results.identity(A.shape[-1], A, A.shape[:-2])
    base, n = (inv(A), -n) if n < 0 else (A, n)
    power = None
    while n:
        if n & 1:
            power = base if power is None else power @ base
        n >>= 1
        base = base @ base if n else base
    return power.clone() if power is A else power


def multi_dot(tensors) -> Tensor:
    """The product of two or more matrices (the first and last may be vectors), in the cheapest order."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    parts = list(tensors)
    first, last = parts[0].dim() == 1, parts[-1].dim() == 1
    parts[0] = parts[0].unsqueeze(0) if first else parts[0]
    parts[-1] = parts[-1].unsqueeze(-1) if last else parts[-1]
    for i, part in enumerate(parts):
        if part.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {tensors[i].dim()}D")
    for i, (a, b) in enumerate(zip(parts, parts[1:])):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied"
            )
    result = _multiply_chain(parts, _split_points([p.shape[0] for p in parts] + [parts[-1].shape[1]]), 0, len(parts) - 1)
    result = result.squeeze(-1) if last else result
    return result.squeeze(0) if first else result


def _split_points(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Returns, for each subchain (i, j) of matrices, the k after which to split it for the fewest multiplications.

    Algorithm: Cormen et al., 15.2.
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return cut


def _multiply_chain(parts: list[Tensor], cut: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return parts[i]
    k = cut[i, j]
    return _multiply_chain(parts, cut, i, k) @ _multiply_chain(parts, cut, k + 1, j)


@out_variant
def chain_matmul(*matrices: Tensor) -> Tensor:
    """torch.chain_matmul: multi_dot of the arguments, which are matrices; a copy of the only one."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.dim()}, expected 2 instead.")
    return multi_dot(matrices) if len(matrices) > 1 else matrices[0].clone()


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product along dim; other dimensions broadcast."""
    from .._functions import broadcast_tensors

    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    for t in (input, other):
        if t.dim() and t.shape[dim] != 3:
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
            )
    return _torch.cross(*broadcast_tensors(input, other), dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonal of dimensions dim1 and dim2."""
    return _torch.diagonal(A, offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of products along dim, with the first factors conjugated."""
    if isinstance(dim, bool) or not is_int(dim):
        raise TypeError(f"linalg_vecdot(): argument 'dim' must be int, not {type(dim).__name__}")
    if not (x.is_floating_point() or x.is_complex()):
        raise NotImplementedError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype} and y of type {y.dtype} instead"
        )
    return (x.conj() * y).sum(dim)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dimension."""
    x = x if x.dim() else x.unsqueeze(0)
    N = x.shape[-1] if N is None else N
    if N <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, got {N}")
    x = x.unsqueeze(-1)
    return _torch.cat([_torch.ones_like(x), x.expand(*x.shape[:-1], N - 1)], -1).cumprod(-1)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a linear map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    front, back = A.shape[:ind], A.shape[ind:]
    if results.product(front) != results.product(back):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{results.product(back)} != {results.product(front)}"
        )
    return inv(A.reshape(results.product(front), -1)).reshape([*back, *front])


def tensorsolve(A: Tensor, other: Tensor, dims=None) -> Tensor:
    """X with tensordot(A, X, X.dim()) = other."""
    B = other
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    rest = A.shape[B.dim() :]
    if results.product(rest) != results.product(A.shape[: B.dim()]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {results.product(rest)} != {results.product(A.shape[: B.dim()])}"
        )
    return solve(A.reshape(-1, results.product(rest)), B.reshape(-1)).reshape(rest)
