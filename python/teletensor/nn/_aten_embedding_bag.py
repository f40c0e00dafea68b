"""torch.embedding_bag, which also returns the bag of each index, the bags' sizes and the indices of the maxima."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from ._aten_layers import convolution
from .embedding_bag import embedding_bag as _embedding_bag

_MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The sums (mode 0), means (1) or maxima (2) of rows of `weight`, by bags of `indices` that begin at `offsets`.

    Returns:
        The result; the bag of each index (empty for sums without padding_idx); the number of indices of each bag that are not
        padding_idx (zeros for sums); and for maxima the index of each element's row, for means the numbers again, else zeros.
    """
    if mode not in (0, 1, 2):
        raise RuntimeError(f"[embedding_bag] expected a mode of 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if indices.dim() != 1 or offsets.dim() != 1:
        raise RuntimeError(f"input has to be a 1D Tensor, but got Tensor of dimension {indices.dim()}, with offsets of {offsets.dim()}")
    padding = None
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise RuntimeError(f"padding_idx must be within the number of embeddings, -{weight.shape[0]} through {weight.shape[0] - 1} but "
                               f"got {padding_idx}")  # fmt: skip
        padding = padding_idx % weight.shape[0]
    if indices.dtype is not offsets.dtype:
        indices, offsets = indices.to(_C.int64), offsets.to(_C.int64)
    result = _embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights, include_last_offset, padding
    )
    bags, places = result.shape[0], _C.torch.arange(len(indices), dtype=offsets.dtype, device=indices.device)
    bag_of = _C.torch.searchsorted(offsets[:bags].contiguous(), places, right=True) - 1
    if mode == 0:
        zeros = _C.torch.zeros(offsets.shape, dtype=offsets.dtype, device=offsets.device)
        return result, zeros.new_empty(0) if padding is None else bag_of.to(indices.dtype), zeros, zeros.clone()
    counted = _C.torch.ones_like(indices) if padding is None else (indices != padding).to(indices.dtype)
    sizes = _C.torch.zeros(bags, dtype=indices.dtype, device=indices.device).index_add(0, bag_of, counted)
    if mode == 1:
        return result, bag_of.to(indices.dtype), sizes, sizes.clone()
    rows, found = weight.detach().index_select(0, indices), result.detach().index_select(0, bag_of)
    places, none = places.to(_C.int64).unsqueeze(1).expand(rows.shape), len(indices)
    places = _C.torch.where((rows == found) & (counted.unsqueeze(1) > 0), places, _C.torch.full_like(places, none))
    first = _C.torch.full((bags, rows.shape[1]), none, dtype=places.dtype, device=places.device)
    first = first.scatter_reduce(0, bag_of.unsqueeze(1).expand(rows.shape), places, "amin")
    maxima = _C.torch.cat([indices, indices.new_zeros(1)])[first]
    return result, bag_of.to(indices.dtype), sizes, maxima


def mkldnn_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int], stride: list[int], dilation: list[int], groups: int
) -> Tensor:
    """A convolution of tensors on the CPU."""
    if input.device.type != "cpu":
        raise NotImplementedError(f"Could not run 'aten::mkldnn_convolution' with arguments from the '{input.device.type.upper()}' backend")
    return convolution(input, weight, bias, stride, padding, dilation, False, [0] * (input.dim() - 2), groups)
