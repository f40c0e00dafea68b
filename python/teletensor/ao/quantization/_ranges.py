"""Ranges of integers and of observed numbers, and the scale and zero point that map one to the other."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _C
from ... import _quantized_names as q
from ..._C import Tensor

EPSILON = 2.0**-23  # of float32: the smallest scale
_SIGNED, _UNSIGNED, _WIDE = (q.qint8, _C.int8), (q.quint8, _C.uint8), (q.qint32, _C.int32)
QUANTIZED = (
    q.qint8, q.quint8, q.quint4x2, q.qint32, _C.int8, _C.uint8, _C.int16, _C.int32, _C.float8_e5m2, _C.float8_e4m3fn, _C.uint16,
)  # fmt: skip
_UNDERLYING = {
    q.quint8: _C.uint8, q.qint8: _C.int8, q.qint32: _C.int32, q.quint4x2: _C.uint8, q.quint2x4: _C.uint8,
    **{d: d for d in (_C.uint8, _C.int8, _C.uint16, _C.int16, _C.int32, _C.float8_e5m2, _C.float8_e4m3fn)},
}  # fmt: skip
BITS = {
    **dict.fromkeys((*_SIGNED, *_UNSIGNED), 8), **dict.fromkeys(_WIDE, 32), _C.int16: 16, _C.uint16: 16, q.quint4x2: 4, q.quint2x4: 2,
}  # fmt: skip
PER_CHANNEL = (q.per_channel_affine, q.per_channel_symmetric, q.per_channel_affine_float_qparams)


def integer_limits(dtype: Any) -> tuple[int, int]:
    """The smallest and largest integer of a dtype, quantized or not. Raises TypeError for other dtypes."""
    if dtype not in BITS:
        raise TypeError(f"expected a quantized or integer dtype of an observer, got {dtype}")
    bits = BITS[dtype]
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype in (*_SIGNED, *_WIDE, _C.int16) else (0, 2**bits - 1)


def is_per_tensor(qscheme: Any) -> bool:
    """Whether all elements of a tensor share the scale."""
    return qscheme in (q.per_tensor_affine, q.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Whether each index of a dimension has its own scale."""
    return qscheme in PER_CHANNEL


def to_underlying_dtype(qdtype: Any) -> Any:
    """The dtype of the integers of a quantized dtype."""
    if qdtype not in _UNDERLYING:
        raise AssertionError(f"Unsupported dtype: {qdtype}")
    return _UNDERLYING[qdtype]


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Raises AssertionError for a range of integers without 0 or with fewer than two integers."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def calculate_qmin_qmax(
    quant_min: int | None, quant_max: int | None, has_customized_qrange: bool, dtype: Any, reduce_range: bool
) -> tuple[int, int]:
    """The smallest and largest integer: those given, or those of the dtype, with one bit less if ``reduce_range``."""
    if has_customized_qrange:
        limit = 256 if dtype in _SIGNED else 2**32 if dtype in _WIDE else None
        if limit and not 0 < quant_max - quant_min + 1 <= limit:
            raise AssertionError(f"quantization range should be positive and not exceed the maximum bit range (={limit}).")
        return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
    if dtype in _SIGNED:
        return (-64, 63) if reduce_range else (-128, 127)
    if dtype in _UNSIGNED:
        return (0, 127) if reduce_range else (0, 255)
    if dtype in _WIDE:
        return -(2**31), 2**31 - 1
    return {_C.uint16: (0, 2**16 - 1), _C.int16: (-(2**15), 2**15 - 1)}.get(dtype, (0, 15))


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether ranges were observed; warns if not. Waits for the values. Raises AssertionError if a minimum exceeds its maximum."""
    observed = bool(min_val.numel() and max_val.numel())
    if observed and (min_val.dim() == 0 or max_val.dim() == 0):
        low, high = _C.torch.stack([min_val.reshape(()), max_val.reshape(())]).tolist()
        observed = not (low == float("inf") and high == -float("inf"))
        wrong = low > high
    else:
        wrong = observed and bool((min_val > max_val).any())
    if not observed:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
    elif wrong:
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return observed


def qparams_of(
    min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: Any, eps: Tensor, has_customized_qrange: bool, qscheme: Any
) -> tuple[Tensor, Tensor]:
    """(scale, zero point) of valid ranges, computed without waiting. Ranges of one number give tensors of one element."""
    if min_val.dim() == 0:
        min_val, max_val = min_val.reshape(1), max_val.reshape(1)
    low, high, span = min_val.clamp(max=0), max_val.clamp(min=0), float(quant_max - quant_min)
    eps = eps.to(low.device)
    if qscheme in (q.per_tensor_symmetric, q.per_channel_symmetric):
        scale = _C.torch.maximum(_C.torch.maximum(-low, high) / (span / 2), eps)
        middle = (quant_min + quant_max) // 2 if has_customized_qrange else 128
        point = middle if dtype in _UNSIGNED else 2**15 if dtype == _C.uint16 else 0
        return scale, _C.torch.full_like(low, point, dtype=_C.int64)
    if qscheme == q.per_channel_affine_float_qparams:
        scale = (max_val - min_val) / span
        scale = _C.torch.where(scale > eps, scale, _C.torch.ones_like(scale))
        return scale, -min_val / scale
    scale = _C.torch.maximum((high - low) / span, eps)
    point = (quant_min - (low / scale).round().to(_C.int32)).clamp(quant_min, quant_max)
    return scale, point


def determine_qparams(
    min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: Any, eps: Tensor, has_customized_qrange: bool,
    qscheme: Any = q.per_tensor_affine,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(scale, zero point) of ranges as float64 and int64; 1 and 0, with a warning, if nothing was observed. Waits for the range."""
    if not check_min_max_valid(min_val, max_val):
        return _C.tensor([1.0], device=min_val.device), _C.tensor([0], device=min_val.device)
    scale, point = qparams_of(min_val, max_val, quant_min, quant_max, dtype, eps, has_customized_qrange, qscheme)
    return scale.to(_C.float64), point.to(_C.int64)
