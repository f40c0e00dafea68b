"""Summaries of tensors whose values have been requested and have not arrived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _C
from ..._functions import tensor
from . import summary as summaries
from ._tensorboard import Summary

_LARGEST_FLOAT64 = 1 << 53  # counts are received as float64


class Later:
    """A summary that is made when the values of a tensor have arrived."""

    def __init__(self, values, make: Callable[[np.ndarray], Summary]):
        self._array, self._make = values.numpy_async(force=True), make

    def done(self) -> bool:
        """Whether summary() returns at once."""
        return self._array.done()

    def summary(self) -> Summary:
        """Waits for the values. Raises the error of their computation."""
        return self._make(self._array.wait())


def scalar_later(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Summary | Later:
    """A summary of a number; of a tensor, one that is made later."""

    def make(number: Any) -> Summary:
        return summaries.scalar(tag, number, new_style=new_style, double_precision=double_precision)

    if not isinstance(value, _C.Tensor):
        return make(value)
    if value.numel() != 1:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given shape: {tuple(value.shape)}")
    return Later(value.detach().to(dtype=_C.float64), make)


def histogram_later(tag: str, values: Any, bins: Any, max_bins: int | None) -> Summary | Later:
    """A summary of a histogram; of a tensor and limits of bins, one that the engine counts and that is made later."""
    limits = isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str)
    if not isinstance(values, _C.Tensor) or not limits or values.numel() == 0:
        return summaries.histogram(tag, values, bins, max_bins)
    edges = np.asarray(bins, float)
    if edges.ndim != 1 or edges.size < 2 or np.any(np.diff(edges) < 0):
        raise ValueError("[add_histogram] expected at least two limits of bins in ascending order")
    num, count = values.numel(), edges.size - 1
    assert num < _LARGEST_FLOAT64

    def make(found: np.ndarray) -> Summary:
        totals = dict(zip(("min", "max", "sum", "sum_squares"), found[count:].tolist(), strict=True))
        content = summaries.histogram_of_counts(found[:count].astype(np.int64), edges, num, totals, max_bins)
        return Summary(value=[Summary.Value(tag=tag, histo=content)])

    return Later(_count(values.detach(), edges), make)


def _count(values, edges: np.ndarray):
    """The number of values in each bin, and their minimum, maximum, sum and sum of squares, as one tensor of float64."""
    torch = _C.torch
    values = values.flatten().to(dtype=_C.float64)
    limits = tensor(edges, dtype=_C.float64, device=values.device)
    bin_ = torch.searchsorted(limits, values, right=True)
    # As in numpy.histogram the last bin contains its upper limit. Values outside are counted in one more bin.
    bin_ = torch.where(values == limits[-1], edges.size - 1, bin_) - 1
    bin_ = torch.where((bin_ < 0) | (bin_ >= edges.size - 1), edges.size - 1, bin_)
    counts = torch.zeros(edges.size, dtype=_C.float64, device=values.device)
    counts = counts.index_add(0, bin_, torch.ones_like(values))
    totals = torch.stack([values.min(), values.max(), values.sum(), (values * values).sum()])
    return torch.cat([counts[:-1], totals])
