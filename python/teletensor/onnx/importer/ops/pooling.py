"""Pooling."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _values
from .._call import Call, keeps
from .convolution import padded, same_pads

Tensor = torch.Tensor
_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_MAX_INDICES = {1: F.max_pool1d_with_indices, 2: F.max_pool2d_with_indices, 3: F.max_pool3d_with_indices}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _windows(call: Call, x: Tensor) -> tuple[list[int], list[int], list[int], list, list, list]:
    """kernel, strides, dilations, padding before and after, and further padding after for ceil_mode."""
    kernel = call.need("kernel_shape")
    n = x.dim() - 2
    if len(kernel) != n or n not in _MAX:
        raise ValueError(f"[{call.name}] expected a kernel for each of 1 to 3 spatial dimensions, got {kernel} for {n}")
    strides, dilations = call.get("strides") or [1] * n, call.get("dilations") or [1] * n
    before, after = same_pads(call, x.shape[2:], kernel, strides, dilations)
    extra = [0] * n
    if call.get("ceil_mode", 0) and call.get("auto_pad", "NOTSET") in ("NOTSET", ""):
        for i in range(n):
            size = int(x.shape[2 + i])
            reach = dilations[i] * (kernel[i] - 1) + 1
            total = size + before[i] + after[i]
            count = -(-(total - reach) // strides[i]) + 1
            if (count - 1) * strides[i] >= size + before[i]:
                count -= 1
            extra[i] = max((count - 1) * strides[i] + reach - total, 0)
    return kernel, strides, dilations, before, after, extra


def _max_pool(call: Call, x: Tensor) -> Any:
    kernel, strides, dilations, before, after, extra = _windows(call, x)
    n = len(kernel)
    whole = not x.dtype.is_floating_point
    work = x.to(torch.float32) if whole else x
    simple = before == after and not any(extra) and all(_values.fixed(b) and 2 * b <= k for b, k in zip(before, kernel))
    if simple and not call.wants(1):
        found = _MAX[n](work, kernel, strides, before, dilations)
        return found.to(x.dtype) if whole else found
    end = [a + e for a, e in zip(after, extra)]
    wide = padded(work, before, end, float("-inf"))
    if not call.wants(1):
        found = _MAX[n](wide, kernel, strides, 0, dilations)
        return found.to(x.dtype) if whole else found
    found, places = _MAX_INDICES[n](wide, kernel, strides, 0, dilations)
    return found.to(x.dtype) if whole else found, _original_places(call, x, places, before, wide.shape[2:])


def _original_places(call: Call, x: Tensor, places: Tensor, before: list, sizes: Any) -> Tensor:
    """Places in the padded planes, as ONNX counts them: in the whole input, flattened."""
    n = len(before)
    parts = []
    for i in reversed(range(n)):
        parts.append(torch.remainder(places, sizes[i]) - before[i])
        places = torch.div(places, sizes[i], rounding_mode="floor")
    parts.reverse()
    order = range(n) if not call.get("storage_order", 0) else reversed(range(n))
    flat = None
    for i in order:
        flat = parts[i] if flat is None else flat * x.shape[2 + i] + parts[i]
    plane = 1
    for size in x.shape[2:]:
        plane = plane * size
    planes = torch.arange(x.shape[0] * x.shape[1], device=x.device).reshape([x.shape[0], x.shape[1]] + [1] * n)
    return flat + planes * plane


def _unfolded(x: Tensor, kernel: list[int], strides: list[int], dilations: list[int]) -> Tensor:
    """The elements of each window, in further dimensions at the end."""
    for i, (k, s, d) in enumerate(zip(kernel, strides, dilations)):
        x = x.unfold(2 + i, d * (k - 1) + 1, s)
        if d > 1:
            x = x[..., ::d]
    return x


def _counts(size: int, k: int, s: int, d: int, before: int, after: int, extra: int, include: bool) -> np.ndarray:
    """How many elements of each window of one dimension count."""
    _values.bounded(before + size + after + extra, "AveragePool")
    valid = np.zeros(before + size + after + extra)
    valid[0 if include else before : before + size + (after if include else 0)] = 1
    starts = np.arange((len(valid) - d * (k - 1) - 1) // s + 1) * s
    return valid[starts[:, None] + np.arange(k)[None, :] * d].sum(1)


def _average_pool(call: Call, x: Tensor) -> Tensor:
    kernel, strides, dilations, before, after, extra = _windows(call, x)
    n, include = len(kernel), bool(call.get("count_include_pad", 0))
    if (
        before == after
        and not any(extra)
        and set(dilations) == {1}
        and all(_values.fixed(b) and 2 * b <= k for b, k in zip(before, kernel))
    ):
        return _AVERAGE[n](x, kernel, strides, before, False, include)
    total = _unfolded(padded(x, before, [a + e for a, e in zip(after, extra)]), kernel, strides, dilations)
    counts = [
        _counts(
            int(x.shape[2 + i]), kernel[i], strides[i], dilations[i], int(before[i]), int(after[i]), extra[i], include
        )
        for i in range(n)
    ]
    divisor = functools.reduce(lambda a, b: a[..., None] * b, counts)
    divisor = torch.from_numpy(np.ascontiguousarray(divisor)).to(x.device).to(x.dtype)
    return total.sum(list(range(-n, 0))) / divisor


def _lp_pool(call: Call, x: Tensor) -> Tensor:
    kernel, strides, dilations, before, after, extra = _windows(call, x)
    p = call.get("p", 2)
    windows = _unfolded(padded(x, before, [a + e for a, e in zip(after, extra)]), kernel, strides, dilations)
    return windows.abs().pow(p).sum(list(range(-len(kernel), 0))).pow(1.0 / p)


def _planes(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


def _global_lp(call: Call, x: Tensor) -> Tensor:
    p = call.get("p", 2)
    return x.abs().pow(p).sum(_planes(x), True).pow(1.0 / p)


@keeps(2)
def _max_unpool(call: Call, x: Tensor, places: Tensor, shape: Any = None) -> Tensor:
    kernel = call.need("kernel_shape")
    n = len(kernel)
    strides, pads = call.get("strides") or [1] * n, call.get("pads") or [0] * (2 * n)
    inferred = [(x.shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[n + i] for i in range(n)]
    inferred = [x.shape[0], x.shape[1], *inferred]
    sizes = inferred if shape is None else _values.ints(shape)
    total = 1
    for size in inferred:
        total = total * size
    flat = torch.zeros([total], dtype=x.dtype, device=x.device)
    found = flat.scatter(0, places.reshape([-1]), x.reshape([-1])).reshape(inferred)
    return padded(found, [0] * n, [a - b for a, b in zip(sizes[2:], inferred[2:])]) if shape is not None else found


TABLE: dict[str, tuple] = {
    "MaxPool": ((1, _max_pool),), "AveragePool": ((1, _average_pool),), "LpPool": ((1, _lp_pool),),
    "GlobalAveragePool": ((1, lambda call, x: x.mean(_planes(x), True)),),
    "GlobalMaxPool": ((1, lambda call, x: x.amax(_planes(x), True)),), "GlobalLpPool": ((1, _global_lp),),
    "MaxUnpool": ((9, _max_unpool),),
}  # fmt: skip
