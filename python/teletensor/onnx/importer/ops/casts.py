"""Conversions between element types, also those that the engine stores in another dtype, and strings."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import teletensor as torch

from .. import _types, _values
from .._call import Call, keeps, sees_types
from .._values import Narrow

Tensor = torch.Tensor


@cache
def _table(number: int, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """The magnitudes of a small floating-point type, ascending, and the largest float64 that rounds to each of them.

    The last bound is that of the largest magnitude; numbers above it are out of range.
    """
    kind = _types.numpy_of(number)
    codes = np.arange(16 if number == _types.E2M1 else 256, dtype=np.uint8).view(kind).astype(np.float64)
    values = np.unique(codes[np.isfinite(codes) & (codes >= 0)])
    next_value = 2 * values[-1] - values[-2] if number != _types.E8M0 else values[-1] * 2
    following = np.append(values[1:], next_value)
    if mode == "up":
        return values, np.append(values[:-1], values[-1])
    if mode == "down":
        return values, np.nextafter(following, -np.inf)
    middles = (values + following) / 2
    even = np.arange(len(values)) % 2 == 0
    if number == _types.E8M0:  # halves are rounded up
        even = np.zeros(len(values), bool)
    return values, np.where(even, middles, np.nextafter(middles, -np.inf))


def to_small_float(x: Tensor, number: int, saturate: bool, mode: str = "nearest") -> Tensor:
    """Numbers rounded to a floating-point type of at most 8 bits, in the dtype in which the engine stores it.

    Args:
        saturate: whether numbers out of range become the largest one; otherwise they become infinite, or NaN in types
            without infinities.
        mode: "nearest" (ties to even), "up" or "down".
    """
    values, bounds = _table(number, mode)
    wide = x.to(torch.float64)
    magnitude = wide.abs()
    bounds_tensor = torch.from_numpy(bounds.copy()).to(x.device)
    values_tensor = torch.from_numpy(np.append(values, values[-1])).to(x.device)
    place = torch.bucketize(magnitude, bounds_tensor)
    found = values_tensor[place]
    if not saturate and number != _types.E2M1:
        beyond = float("inf") if number == _types.E5M2 else float("nan")
        found = torch.where(place >= len(bounds), torch.full_like(found, beyond), found)
        if number == _types.E8M0:
            found = torch.where(magnitude == 0, torch.full_like(found, float("nan")), found)
    if number == _types.E2M1:
        return torch.where(torch.isnan(wide), torch.full_like(found, -0.0), torch.copysign(found, wide)).to(
            torch.float16
        )
    if number != _types.E8M0:
        found = torch.copysign(found, wide)
        if number in (_types.E4M3FNUZ, _types.E5M2FNUZ):
            found = torch.where(found == 0, torch.zeros_like(found), found)
    found = torch.where(torch.isnan(wide), wide, found)
    return found.to(torch.float32).to(_types.dtype_of(number))


def to_small_integer(x: Tensor, number: int) -> Tensor:
    """Numbers in an integer type of 2 or 4 bits: higher bits are discarded; fractions are cut off."""
    low, high = _types.SMALL_INTEGERS[number]
    width = high - low + 1
    wide = x.to(torch.int64) & (width - 1)
    if low < 0:
        wide = torch.where(wide > high, wide - width, wide)
    return wide.to(_types.dtype_of(number))


def convert(x: Tensor, to: int, saturate: bool = True, mode: str = "nearest") -> Any:
    """A tensor in an ONNX element type; Narrow if the engine stores it in another dtype."""
    if to in _types.SMALL_FLOATS:
        found = to_small_float(x, to, saturate, mode)
    elif to in _types.SMALL_INTEGERS:
        found = to_small_integer(x, to)
    else:
        dtype = _types.dtype_of(to)
        if x.dtype.is_floating_point and dtype in (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32):
            x = x.to(torch.int64)  # the bits beyond the type are discarded, as NumPy does
        if x.dtype.is_floating_point and dtype == torch.uint64:
            return torch.where(x < 0, x.to(torch.int64).view(torch.uint64), x.to(torch.uint64))
        return x.to(dtype)
    return Narrow(found, to) if to in _types.NARROW else found


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # a number with a point or an exponent
        return int(float(text))


def _from_text(text: np.ndarray, to: int) -> np.ndarray:
    kind = _types.numpy_of(to)
    if kind.kind in "iub":
        flat = [_whole(t) for t in text.reshape(-1)]
    else:
        flat = [float(t) for t in text.reshape(-1)]
    return np.asarray(flat).astype(kind).reshape(text.shape)


def _to_text(value: Any) -> np.ndarray:
    numbers = _values.output(value)
    found = np.empty(numbers.shape, dtype=object)
    wide = numbers.astype(np.float32) if numbers.dtype.name == "bfloat16" else numbers
    found.reshape(-1)[:] = (
        [str(n) for n in wide.reshape(-1)] if wide.dtype.kind != "b" else [str(int(n)) for n in wide.reshape(-1)]
    )
    return found


def _cast_to(call: Call, x: Any, to: int) -> Any:
    if to == _types.STRING:
        return x if _values.is_text(x) else _to_text(x)
    if _values.is_text(x):
        found = _values.from_array(_from_text(x, to))
        return Narrow(call.tensor(found), to) if to in _types.NARROW else call.tensor(found)
    mode = call.get("round_mode", "up") if to == _types.E8M0 else "nearest"
    return convert(call.tensor(x), to, bool(call.get("saturate", 1)), mode)


@keeps()
@sees_types
def _cast(call: Call, x: Any) -> Any:
    to = call.need("to")
    to = getattr(_types, to) if isinstance(to, str) else to
    if (
        not _values.is_text(x)
        and isinstance(x, (np.ndarray, _values.Sizes))
        and to not in _types.NARROW
        and to != _types.STRING
    ):
        found = _values.array(x)
        if found.size <= 64 and to not in _types.SMALL_FLOATS:
            if found.dtype == object and to in (_types.INT64, _types.INT32):
                return x
            with np.errstate(all="ignore"):
                return found.astype(_types.numpy_of(to))
    return _cast_to(call, x, to)


@keeps()
@sees_types
def _cast_like(call: Call, x: Any, like: Any) -> Any:
    return _cast_to(call, x, _values.type_of(like))


@keeps()
@sees_types
def _bit_cast(call: Call, x: Any) -> Any:
    to = call.need("to")
    found = _values.output(x).view(_types.numpy_of(to)) if isinstance(x, Narrow) or to in _types.NARROW else None
    if found is not None:
        value = _values.from_array(found)
        return Narrow(call.tensor(value), value.type) if isinstance(value, Narrow) else call.tensor(value)
    tensor, dtype = call.tensor(x), _types.dtype_of(to)
    if tensor.dtype == torch.bool:
        tensor = tensor.to(torch.uint8)
    return tensor.view(torch.uint8) != 0 if dtype == torch.bool else tensor.view(dtype)


TABLE: dict[str, tuple] = {"Cast": ((1, _cast),), "CastLike": ((15, _cast_like),), "BitCast": ((26, _bit_cast),)}
