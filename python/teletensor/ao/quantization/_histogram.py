"""HistogramObserver: the range with the least quantization error of the observed numbers, found from a histogram."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import _C
from ... import _quantized_names as q
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._lazy import set_module
from ._observer_base import UniformQuantizationObserverBase
from ._ranges import BITS, EPSILON, is_per_tensor

_UPSAMPLE = 16  # parts of a bin that move separately when the range grows
_STEP = 1e-5  # of the search: the share of numbers that a step may cut off


def _edges(low: Tensor, high: Tensor, parts: int) -> Tensor:
    """The ends of equal parts of a range, as torch.linspace(low, high, parts + 1) computes them."""
    index = _C.torch.arange(parts + 1, device=low.device)
    step = (high - low) / parts
    return _C.torch.where(index < (parts + 1) // 2, low + step * index, high - step * (parts - index))


def _count(values: Tensor, low: Tensor, high: Tensor, bins: int, weights: Tensor) -> Tensor:
    """The sums of the values' weights in equal bins. A range of one number is widened by 1 to both sides, as torch.histc does."""
    single = low == high
    edges = _edges(_C.torch.where(single, low - 1, low), _C.torch.where(single, high + 1, high), bins)
    index = (_C.torch.bucketize(values, edges, right=True) - 1).clamp(0, bins - 1)
    return _C.torch.zeros(bins, device=low.device, dtype=weights.dtype).index_add(0, index, weights)


class HistogramObserver(UniformQuantizationObserverBase):
    """Observes a histogram, and finds the range whose quantization error is least.

    Observing waits for nothing: infinite numbers are left out without a warning. ``calculate_qparams`` reads the histogram.

    Args:
        bins: the number of bins.
        dtype, qscheme, reduce_range, quant_min, quant_max, eps: as of UniformQuantizationObserverBase.
    """

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, bins: int = 2048, dtype: Any = q.quint8, qscheme: Any = q.per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPSILON,
        is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError("HistogramObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine.")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.bins, self.upsample_rate = bins, _UPSAMPLE
        self.dst_nbins = 2 ** BITS[dtype]
        self.register_buffer("histogram", _C.torch.zeros(bins, **self.factory_kwargs))
        self.register_buffer("min_val", _C.tensor(float("inf"), **self.factory_kwargs))
        self.register_buffer("max_val", _C.tensor(float("-inf"), **self.factory_kwargs))

    @no_grad()
    def forward(self, x_orig: Tensor) -> Tensor:
        if not x_orig.numel():
            return x_orig
        where, infinity = _C.torch.where, float("inf")
        x = x_orig.detach().to(self.histogram.dtype).reshape(-1)
        finite = x.abs() != infinity
        low = _C.torch.minimum(self.min_val, where(finite, x, infinity).amin())
        high = _C.torch.maximum(self.max_val, where(finite, x, -infinity).amax())
        update = _count(x, low, high, self.bins, finite.to(x.dtype))
        first = (self.min_val == infinity) | (self.max_val == -infinity)
        same = (low == self.min_val) & (high == self.max_val)
        moved = where(same, self.histogram, self._moved(low, high))
        nothing = low == infinity  # only infinite numbers until now
        self.histogram.copy_(where(nothing, self.histogram, where(first, update, moved + update)))
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        self._observed = True
        return x_orig

    def _moved(self, low: Tensor, high: Tensor) -> Tensor:
        """The histogram with bins of a wider range."""
        total = self.histogram.sum().reshape(1)
        single = _count(self.min_val.reshape(1), low, high, self.bins, total)
        parts = self.bins * self.upsample_rate
        heights = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        middles = _edges(self.min_val, self.max_val, parts)[:-1] + 0.5 * ((self.max_val - self.min_val) / parts)
        return _C.torch.where(self.min_val == self.max_val, single, _count(middles, low, high, self.bins, heights))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of the range with the least error; 1 and 0, with a warning, if nothing was observed."""
        found = self._read()
        if found[0] == float("inf") and found[1] == -float("inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default scale and zero point ", stacklevel=2
            )
            return _C.tensor([1.0], device=self.min_val.device), _C.tensor([0], device=self.min_val.device)
        return self._calculate_qparams(*self._non_linear_param_search(found))

    def _read(self) -> list[float]:
        """The range and the histogram's counts. Waits for them."""
        return _C.torch.cat([self.min_val.reshape(1), self.max_val.reshape(1), self.histogram]).tolist()

    def _non_linear_param_search(self, found: list[float] | None = None) -> tuple[Tensor, Tensor]:
        """The ends of the range with the least error."""
        low, high, *counts = self._read() if found is None else found
        if len(counts) != self.bins:
            raise AssertionError(f"expected a histogram of {self.bins} bins, got {len(counts)}")
        begin, end = best_bins(np.asarray(counts, np.float32), low, high, self.dst_nbins)
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * begin, self.min_val + width * (end + 1)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        if local_metadata.get("version") in (None, 1, 2):  # an observer without a range had empty tensors then
            for name, value in (("min_val", float("inf")), ("max_val", -float("inf"))):
                if prefix + name in state_dict and not state_dict[prefix + name].numel():
                    state_dict[prefix + name] = _C.tensor(value)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


def _error(counts: np.ndarray, width: float, begin: int, end: int, levels: int) -> float:
    """The sum of squared errors if the numbers of the bins from begin to end are rounded to equally spaced levels."""
    step = width * (end - begin + 1) / levels
    if step == 0.0:
        return 0.0
    f = np.float32
    density = counts / f(width)
    starts = (np.arange(len(counts)) - begin).astype(f) * f(width)
    ends = starts + f(width)
    first = np.clip(np.floor(starts / f(step)), 0, levels - 1)
    last = np.clip(np.floor(ends / f(step)), 0, levels - 1)

    def cubes(a: Any, b: Any) -> np.ndarray:
        return density * ((b * b * b - a * a * a) / f(3))

    half = f(step / 2)
    errors = cubes(starts - (first + f(0.5)) * f(step), half)
    errors = errors + (last - first - 1) * cubes(-half, half)
    errors = errors + cubes(-half, ends - (last * f(step) + half))
    return float(errors.sum(dtype=f))


def best_bins(counts: np.ndarray, low: float, high: float, levels: int) -> tuple[int, int]:
    """The first and last bin of the range with the least error: PyTorch's search, which cuts off tails while the error falls."""
    bins = len(counts)
    total = np.float32(counts.sum(dtype=np.float64))
    sums = np.cumsum(counts, dtype=np.float64).astype(np.float32)
    width = (high - low) / bins
    alpha, beta, begin, end, least = 0.0, 1.0, 0, bins - 1, float("inf")
    while alpha < beta:
        next_alpha, next_beta = alpha + _STEP, beta - _STEP
        left, right = begin, end
        while left < end and sums[left] < np.float32(next_alpha * float(total)):
            left += 1
        while right > begin and sums[right] > np.float32(next_beta * float(total)):
            right -= 1
        next_begin, next_end = begin, end
        if left - begin > end - right:
            next_begin, alpha = left, next_alpha
        else:
            next_end, beta = right, next_beta
        if (next_begin, next_end) == (begin, end):
            continue
        error = _error(counts, width, next_begin, next_end, levels)
        if error > least:
            break
        least, begin, end = error, next_begin, next_end
    return begin, end


set_module("teletensor.ao.quantization.observer", HistogramObserver)
