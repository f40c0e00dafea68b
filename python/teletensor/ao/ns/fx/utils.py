"""Measures of the difference of two values, or of corresponding entries of two lists or tuples of values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .... import _C
from ...._C import Tensor

__all__ = ["compute_cosine_similarity", "compute_normalized_l2_error", "compute_sqnr"]


def _of_pairs(measure: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Any], Any]:
    """The measure of two tensors of float32 or quantized ones; of other dtypes None, and of two tuples or lists, a list."""

    @functools.wraps(measure)
    def compute(x: Any, y: Any) -> Any:
        if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
            return [compute(a, b) for a, b in zip(x, y)]
        a, b = (v.dequantize() if v.is_quantized else v for v in (x, y))
        return measure(a, b) if a.dtype is _C.float32 is b.dtype else None

    return compute


@_of_pairs
def compute_sqnr(x: Tensor, y: Tensor) -> Tensor:
    """The signal to quantization noise ratio of y, in decibels."""
    return 20 * (_C.torch.norm(x) / _C.torch.norm(x - y)).log10()


@_of_pairs
def compute_normalized_l2_error(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(sum((x - y)^2) / sum(x^2))."""
    return ((x - y).square().sum() / x.square().sum()).sqrt()


@_of_pairs
def compute_cosine_similarity(x: Tensor, y: Tensor) -> Tensor:
    """The cosine of the angle between the elements as vectors."""
    return _C.ops.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))
