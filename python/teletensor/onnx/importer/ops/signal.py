"""Fourier transforms, windows and mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import teletensor as torch

from .. import _types, _values
from .._call import Call, keeps

Tensor = torch.Tensor


def _transformed(call: Call, x: Tensor, length: Any, axis: int) -> Tensor:
    """The discrete Fourier transform of numbers in pairs (real, imaginary) or single ones (real)."""
    inverse, one_sided, dtype = bool(call.get("inverse", 0)), bool(call.get("onesided", 0)), x.dtype
    if not inverse:
        x = x.to(torch.float64)  # sums of terms that cancel out are then 0 within float32's precision
    axis = axis % x.dim()
    n = x.shape[axis] if length is None else _values.integer(length)
    if one_sided and inverse:
        values = torch.view_as_complex(x.contiguous())
        return torch.fft.irfft(values, n if length is not None else None, axis).unsqueeze(-1).to(dtype)
    if x.shape[-1] == 2:
        values = torch.view_as_complex(x.contiguous())
    elif x.shape[-1] == 1:
        values = x.squeeze(-1)
    else:
        raise ValueError(f"[DFT] expected 1 or 2 numbers per element in the last dimension, got {x.shape[-1]}")
    if one_sided and not values.dtype.is_complex:
        found = torch.fft.rfft(values, n, axis)
    else:
        found = torch.fft.ifft(values, n, axis) if inverse else torch.fft.fft(values, n, axis)
        if one_sided:
            found = found.narrow(axis, 0, n // 2 + 1)
    return torch.view_as_real(found).to(dtype)


@keeps(1)
def _dft_17(call: Call, x: Tensor, length: Any = None) -> Tensor:
    return _transformed(call, x, length, call.get("axis", 1))


@keeps(1, 2)
def _dft(call: Call, x: Tensor, length: Any = None, axis: Any = None) -> Tensor:
    return _transformed(call, x, length, -2 if axis is None else int(_values.integer(axis)))


@keeps(1, 3)
def _stft(call: Call, x: Tensor, step: Any, window: Tensor | None = None, length: Any = None) -> Tensor:
    hop = _values.integer(step)
    size = window.shape[0] if length is None else _values.integer(length)
    one_sided = bool(call.get("onesided", 1))
    values = x
    if x.dim() == 3:
        values = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    frames = values.unfold(1, size, hop)
    if window is not None:
        frames = frames * window
    found = torch.fft.rfft(frames) if one_sided and not values.dtype.is_complex else torch.fft.fft(frames)
    if one_sided and values.dtype.is_complex:
        found = found.narrow(-1, 0, size // 2 + 1)
    return torch.view_as_real(found).to(x.dtype)


def _window(coefficients: tuple[float, ...]) -> Any:
    @keeps()
    def make(call: Call, size: Any) -> Tensor:
        n = _values.bounded(int(_values.integer(size)), call.name)
        period = n if call.get("periodic", 1) else n - 1
        angle = 2 * math.pi * np.arange(n) / max(period, 1)
        found = sum(c * np.cos(k * angle) for k, c in enumerate(coefficients))
        dtype = _types.dtype_of(call.get("output_datatype", _types.FLOAT))
        return call.tensor(np.asarray(found, np.float64).reshape(n)).to(dtype)

    return make


@keeps()
def _mel(call: Call, bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Tensor:
    count, size, sample_rate = (int(_values.integer(v)) for v in (bins, length, rate))
    lower, upper = _values.numbers(low)[0], _values.numbers(high)[0]
    columns = size // 2 + 1
    _values.bounded(columns * count, "MelWeightMatrix")
    mel_low = 2595 * np.log10(1 + lower / 700)
    step = (2595 * np.log10(1 + upper / 700) - mel_low) / (count + 2)
    mel = np.arange(count + 2) * step + mel_low
    edges = ((700 * (np.power(10, mel / 2595) - 1)) * (size + 1) // sample_rate).astype(np.int64)
    if (edges < 0).any() or (edges > columns).any():
        raise ValueError(f"[MelWeightMatrix] expected frequencies of at most half the sample rate, got {lower} to {upper}")
    found = np.zeros((columns, count), np.float32)
    for i in range(count):
        start, centre, end = edges[i : i + 3]
        if centre == start:
            found[centre, i] = 1
        else:
            rows = np.arange(start, centre + 1)
            found[rows, i] = (rows - start) / (centre - start)
        if end > centre:
            rows = np.arange(centre, end)
            found[rows, i] = (end - rows) / (end - centre)
    return call.tensor(found).to(_types.dtype_of(call.get("output_datatype", _types.FLOAT)))


TABLE: dict[str, tuple] = {
    "DFT": ((17, _dft_17), (20, _dft)), "STFT": ((17, _stft),), "HannWindow": ((17, _window((0.5, -0.5))),),
    "HammingWindow": ((17, _window((25 / 46, -21 / 46))),), "BlackmanWindow": ((17, _window((0.42, -0.5, 0.08))),),
    "MelWeightMatrix": ((17, _mel),),
}  # fmt: skip
