"""Private functions of the module torch that libraries call."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._generator import Generator

__all__ = [
    "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo", "_log_softmax", "_sample_dirichlet", "_shape_as_tensor",
    "_softmax", "_softmax_backward_data", "_standard_gamma", "_unique2", "_weight_norm",
]  # fmt: skip

_torch = _C.torch


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:  # noqa: A002
    """Draws from gamma distributions with the given shapes and rate 1; differentiable.

    Raises:
        NotImplementedError: a generator is given.
    """
    if generator is not None:
        raise NotImplementedError("[_standard_gamma] generator= is not supported; use manual_seed()")
    from ..distributions._gamma_sampling import standard_gamma

    return standard_gamma(input, input.shape)


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:  # noqa: A002
    """Draws from Dirichlet distributions along the last dimension.

    Raises:
        NotImplementedError: a generator is given.
    """
    drawn = _standard_gamma(input, generator)
    return drawn / drawn.sum(-1, keepdim=True)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v g / |v|, with the norm over all dimensions but `dim` (-1: over all)."""
    if dim == -1:
        return v * (g / v.norm())
    others = [i for i in range(v.dim()) if i != dim]
    return v * (g / (v.square().sum(others, keepdim=True).sqrt() if others else v.abs()))


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes of a tensor as an int64 tensor on the CPU."""
    return _C.tensor(list(self.shape), dtype=_C.int64)


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:  # noqa: A002
    """softmax; with `half_to_float`, float16 inputs give a float32 result."""
    return _torch.softmax(input, dim, dtype=_C.float32 if half_to_float else None)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:  # noqa: A002
    """log_softmax; with `half_to_float`, float16 inputs give a float32 result."""
    return _torch.log_softmax(input, dim, dtype=_C.float32 if half_to_float else None)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: _C.dtype) -> Tensor:
    """The gradient of softmax's input, in the input's dtype."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def _unique2(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,  # noqa: A002
) -> tuple[Tensor, Tensor, Tensor]:
    """unique with all three results; those that are not requested are empty."""
    from .. import unique

    found = unique(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    rest = list(found[1:]) if return_inverse or return_counts else []
    values = found[0] if rest else found
    empty = _torch.empty([0], dtype=_C.int64, device=input.device)
    return values, rest.pop(0) if return_inverse else empty, rest.pop(0) if return_counts else empty


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:  # noqa: A002
    """Converts sorted row indices to the offsets of `size` rows."""
    rows = _torch.arange(size + 1, dtype=input.dtype, device=input.device)
    return _torch.searchsorted(input.contiguous(), rows).to(_C.int32 if out_int32 else _C.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Converts row offsets and column indices to (2, n) row and column indices; columns first with `transpose`."""
    dtype = _C.int32 if out_int32 else _C.int64
    places = _torch.arange(col_indices.numel(), dtype=crow_indices.dtype, device=col_indices.device)
    rows = _torch.searchsorted(crow_indices.contiguous(), places, right=True) - 1
    pair = [col_indices.to(dtype), rows.to(dtype)] if transpose else [rows.to(dtype), col_indices.to(dtype)]
    return _torch.stack(pair)
