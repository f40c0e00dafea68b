"""Helpers of distributions: broadcasting, and conversion between probabilities and logits."""

from __future__ import annotations

import numbers

from .. import _C
from .._C import Tensor
from .._functions import _FLOATS, broadcast_tensors
from .._grad_mode import enable_grad
from .._ops.join import tril_indices

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Converts tensors and numbers to tensors of a common shape."""
    for v in values:
        if not isinstance(v, (Tensor, numbers.Number)):
            raise ValueError(f"Input arguments must all be instances of Number or torch.Tensor, got {type(v).__name__}")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    options = {"dtype": like.dtype if like is not None and like.is_floating_point() else _C.default_dtype()}
    options["device"] = None if like is None else like.device
    return tuple(broadcast_tensors(*(v if isinstance(v, Tensor) else _C.tensor(v, **options) for v in values)))


def _standard_normal(shape, dtype, device) -> Tensor:
    return _C.torch.randn(*shape, dtype=dtype, device=device) if shape else _C.torch.randn([], dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, count: int) -> Tensor:
    """Sums over the last `count` dimensions."""
    return value if count == 0 else value.reshape(*value.shape[: value.dim() - count], -1).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probabilities to [eps, 1 - eps], where eps is finfo(dtype).eps."""
    eps = _FLOATS[probs.dtype][1]
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Converts logits to probabilities."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Converts probabilities to log probabilities or, if binary, log odds."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:  # noqa: N801 - PyTorch's name
    """A property that is computed at first use and then stored."""

    def __init__(self, wrapped):
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            value = instance.__dict__[self.name] = self.wrapped(instance)
        return value


def _lower_positions(n: int, diag: int, device) -> Tensor:
    """The positions, in row order, of an n x n matrix's elements on and below a diagonal."""
    skipped = min(max(-diag, 0), n)  # rows without elements
    rows, columns = tril_indices(n - skipped, n, diag + skipped, device=device)
    return (rows + skipped) * n + columns


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of square matrices on and below a diagonal, in row order."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat.flatten(-2).index_select(-1, _lower_positions(n, diag, mat.device))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices with these elements on and below a diagonal, in row order, and 0 above it."""
    count, b = vec.shape[-1], 1 + 2 * diag
    n = round((-b + (b * b + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    positions = _lower_positions(n, diag, vec.device)
    if positions.shape[0] != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    matrix = vec.new_zeros(*vec.shape[:-1], n * n).index_copy(-1, positions, vec)
    return matrix.reshape(*vec.shape[:-1], n, n)
