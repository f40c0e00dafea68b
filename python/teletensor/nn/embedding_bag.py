"""Embedding bags (sum, mean, max), and renormalisation and gradient scaling of embeddings."""

from __future__ import annotations

import warnings

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._options import check_floating
from . import _sparse_gradients

_ops = _C.ops


def renorm_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the indexed rows down to a norm of max_norm, in place and without recording gradients."""
    with no_grad():
        flat = indices.reshape(-1)
        weight.detach().index_copy_(0, flat, weight.detach().index_select(0, flat).renorm(norm_type, 0, max_norm))


def divide_by_frequency(rows: Tensor, indices: Tensor, num_weights: int) -> Tensor:
    """Returns the rows unchanged, but divides the gradient of each row by the number of occurrences of its index."""
    flat = indices.reshape(-1)
    ones = _C.torch.ones(flat.shape, dtype=_C.int64, device=rows.device)
    counts = _C.torch.zeros(num_weights, dtype=_C.int64, device=rows.device).index_add(0, flat, ones)
    share = counts.index_select(0, flat).to(_C.float64).reciprocal().to(rows.dtype).reshape(indices.shape).unsqueeze(-1)
    return rows * share + (rows * (1 - share)).detach()


def _rows(weight: Tensor, flat: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Tensor:
    if sparse and _sparse_gradients.has_sparse_gradient(weight):
        return _sparse_gradients.rows(weight, flat, padding_idx, scale_grad_by_freq)
    return _ops.embedding(weight, flat, -1)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or max of the weight rows of each bag. A bag is a row of a 2D input, or begins at an offset."""
    if weight.dtype is _C.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. It is only supported for mode='sum' (got mode='{mode}')."
        )
    if per_sample_weights is not None:
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
                f"shape as the input ({input.shape})"
            )
        if per_sample_weights.dtype != weight.dtype:
            raise RuntimeError(f"expected per_sample_weights to have weight's dtype {weight.dtype}, got {per_sample_weights.dtype}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-weight.shape[0]} through {weight.shape[0] - 1}, "
            f"but got {padding_idx}"
        )
    check_floating("embedding_bag", weight=weight)
    bags, bag_of = _bags(input, offsets, include_last_offset)
    flat = input.reshape(-1)
    if max_norm is not None:
        renorm_rows(weight, flat, max_norm, norm_type)
    rows = _rows(weight, flat, -1 if padding_idx is None else padding_idx % weight.shape[0], scale_grad_by_freq, sparse)
    if scale_grad_by_freq:
        rows = divide_by_frequency(rows, flat, weight.shape[0])
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    counted = None if padding_idx is None else flat != padding_idx % weight.shape[0]
    return _combine(rows, counted, bags, bag_of, mode)


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[int, Tensor]:
    """Returns the number of bags, and the bag number of each index; indices after the last offset get the next bag
    number.
    """
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of type {type(offsets)}"
            )
        count, length = input.shape
        return count, _C.torch.arange(count, device=input.device).repeat_interleave(length)
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if include_last_offset and offsets.numel() == 0:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    # Here an offset beyond the input raises an IndexError; in _combine an index before the first offset raises one.
    starts = _C.torch.zeros(input.numel() + 1, dtype=_C.int64, device=input.device)
    starts = starts.index_add(0, offsets, _C.torch.ones(offsets.shape, dtype=_C.int64, device=input.device))
    return offsets.numel() - include_last_offset, starts[:-1].cumsum(0) - 1


def _combine(rows: Tensor, counted: Tensor | None, bags: int, bag_of: Tensor, mode: str) -> Tensor:
    """Returns the combined rows of each bag. Rows with the bag number `bags` are in no bag."""
    if mode != "max" and rows.dtype in (_C.float16, _C.bfloat16):  # rounded once
        return _combine(rows.to(_C.float32), counted, bags, bag_of, mode).to(rows.dtype)
    zeros = _C.torch.zeros(bags + 1, rows.shape[1], dtype=rows.dtype, device=rows.device)
    if counted is not None:
        rows = rows.masked_fill(counted.logical_not().unsqueeze(1), -float("inf") if mode == "max" else 0.0)
    if mode == "sum":
        return zeros.index_add(0, bag_of, rows)[:bags]
    ones = _C.torch.ones(rows.shape[0], dtype=_C.int64, device=rows.device) if counted is None else counted.to(_C.int64)
    counts = _C.torch.zeros(bags + 1, dtype=_C.int64, device=rows.device).index_add(0, bag_of, ones).unsqueeze(1)
    if mode == "max":
        most = zeros.index_reduce(0, bag_of, rows, "amax", include_self=False)
        return (most if counted is None else most.masked_fill(counts == 0, 0.0))[:bags]
    return (zeros.index_add(0, bag_of, rows) / counts.clamp_min(1))[:bags]
