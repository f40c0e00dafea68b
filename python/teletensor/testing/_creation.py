"""make_tensor: random tensors for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import _C
from .._C import Tensor
from .._functions import finfo, iinfo


def _limits(dtype, low, high) -> tuple[float, float]:
    """Returns the limits of the values, with defaults, reduced to the dtype's range."""
    real = dtype.is_floating_point or dtype.is_complex
    if dtype is _C.bool:
        least, most, default = 0, 2, (0, 2)
    elif real:
        least, most, default = finfo(dtype).min, finfo(dtype).max, (-9, 9)
    else:
        least, most, default = iinfo(dtype).min, iinfo(dtype).max + (dtype is not _C.int64), (-9, 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and real:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be "
            "removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning, stacklevel=4,
        )  # fmt: skip
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {most})"
        )
    low, high = min(max(low, least), most), min(max(high, least), most)
    return (low, high) if real else (math.ceil(low), math.ceil(high))


def _uniform(shape: tuple, dtype, device, low: float, high: float) -> Tensor:
    wide = high - low >= finfo(dtype).max
    values = _C.torch.empty(shape, dtype=dtype, device=device)
    return values.uniform_(low / 2, high / 2).mul_(2) if wide else values.uniform_(low, high)


def make_tensor(
    *shape: int | Sequence[int], dtype, device, low: float | None = None, high: float | None = None, requires_grad: bool = False,
    noncontiguous: bool = False, exclude_zero: bool = False, memory_format=None,
) -> Tensor:  # fmt: skip
    """Returns a tensor of random values in [low, high).

    Args:
        low, high: by default -9 and 9 (10 for integers); all values for bool.
        noncontiguous: whether the result is every second element of a larger tensor.
        exclude_zero: replaces zeros by 1, or by the smallest normal number.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    real = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not real:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _limits(dtype, low, high)
    noncontiguous = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if noncontiguous else tuple(shape)
    if not real:
        result = _C.torch.randint(low, high, drawn, device=device, dtype=dtype)
    elif dtype.is_complex:
        part = _C.float64 if dtype is _C.complex128 else _C.float32
        result = _C.torch.complex(*(_uniform(drawn, part, device, low, high) for _ in range(2)))
    elif dtype.itemsize == 1:
        result = _uniform(drawn, _C.float32, device, low, high).to(dtype)
    else:
        result = _uniform(drawn, dtype, device, low, high)
    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result.masked_fill_(result == 0, finfo(dtype).tiny if real else 1)
    return result.requires_grad_() if requires_grad else result
