"""Embedding bags (sum, mean, max), and renormalisation and gradient scaling of embeddings."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad

_ops = _C.ops


def renorm_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the indexed rows down to a norm of max_norm, in place and without recording gradients."""
    with no_grad():
        flat = indices.reshape(-1)
        weight.detach().index_copy_(0, flat, weight.detach().index_select(0, flat).renorm(norm_type, 0, max_norm))


def divide_by_frequency(rows: Tensor, indices: Tensor, num_weights: int) -> Tensor:
    """Returns the rows unchanged, but divides the gradient of each row by the number of occurrences of its index."""
    flat = indices.reshape(-1)
    ones = _C.torch.ones(flat.shape, dtype=rows.dtype, device=rows.device)
    counts = _C.torch.zeros(num_weights, dtype=rows.dtype, device=rows.device).index_add(0, flat, ones)
    share = (1 / counts.index_select(0, flat)).reshape(indices.shape).unsqueeze(-1)
    return rows * share + (rows * (1 - share)).detach()


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or max of the weight rows of each bag. A bag is a row of a 2D input, or begins at an offset."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. It is only supported for mode='sum' (got mode='{mode}')."
        )
    bags, bag_of = _bags(input, offsets, include_last_offset)
    flat = input.reshape(-1)
    if max_norm is not None:
        renorm_rows(weight, flat, max_norm, norm_type)
    rows = _ops.embedding(weight, flat, -1)
    if scale_grad_by_freq:
        rows = divide_by_frequency(rows, flat, weight.shape[0])
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    counted = None if padding_idx is None else flat != padding_idx % weight.shape[0]
    return _combine(rows, counted, bags, bag_of, mode)


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[int, Tensor]:
    """Returns the number of bags, and the bag number of each index."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.")
        count, length = input.shape
        return count, _C.torch.arange(count, device=input.device).repeat_interleave(length)
    if input.dim() != 1 or offsets is None or offsets.dim() != 1:
        raise ValueError(f"input has to be 1D with 1D offsets, or 2D, got {input.dim()}D and {'no' if offsets is None else offsets.dim()}")
    starts = offsets[:-1] if include_last_offset else offsets
    positions = _C.torch.arange(input.numel(), device=input.device, dtype=starts.dtype)
    return starts.numel(), _C.torch.searchsorted(starts, positions, right=True) - 1


def _combine(rows: Tensor, counted: Tensor | None, bags: int, bag_of: Tensor, mode: str) -> Tensor:
    zeros = _C.torch.zeros(bags, rows.shape[1], dtype=rows.dtype, device=rows.device)
    if mode == "max":
        if counted is not None:
            rows = rows.masked_fill(counted.logical_not().unsqueeze(1), -float("inf"))
        maxima = zeros.index_reduce(0, bag_of, rows, "amax", include_self=False)
        return maxima if counted is None else maxima.masked_fill(maxima == -float("inf"), 0.0)
    if counted is not None:
        rows = rows.masked_fill(counted.logical_not().unsqueeze(1), 0.0)
    sums = zeros.index_add(0, bag_of, rows)
    if mode == "sum":
        return sums
    ones = _C.torch.ones(rows.shape[0], dtype=rows.dtype, device=rows.device) if counted is None else counted.to(rows.dtype)
    counts = _C.torch.zeros(bags, dtype=rows.dtype, device=rows.device).index_add(0, bag_of, ones)
    return sums / counts.clamp_min(1).unsqueeze(1)
