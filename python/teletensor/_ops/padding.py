"""pad: constants, reflection, replication and wrapping around at the ends of dimensions."""

from __future__ import annotations

import array
import functools
import math

from .. import _C
from .._C import Tensor

_ops = _C.ops
_MANY_PLANES = 32
_LONG_INDEX = 1 << 20  # elements; a longer index is computed in the engine


def pad_index(mode: str, size: int, before: int, after: int, device) -> Tensor:
    """The place in a dimension of `size` elements of each element of the padded dimension."""
    if before + size + after > _LONG_INDEX:
        return _long_index(mode, size, before, after, device)
    data = _index_bytes(mode, size, before, after)
    return _C.from_bytes(data, _C.int64, [len(data) // 8], device)


def _check_reflection(size: int, before: int, after: int) -> None:
    if max(before, after) >= size:
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at a dimension of size {size}"
        )


def _long_index(mode: str, size: int, before: int, after: int, device) -> Tensor:
    if mode == "reflect":
        _check_reflection(size, before, after)
    positions = _C.torch.arange(-before, size + after, device=device)
    if mode == "reflect":
        return (size - 1) - (positions.abs() - (size - 1)).abs()
    if mode == "replicate":
        return positions.clamp(0, size - 1)
    if mode == "circular":
        return positions % size
    raise NotImplementedError(f"Unrecognised padding mode {mode}")


@functools.lru_cache(maxsize=64)  # layers repeat the same padding
def _index_bytes(mode: str, size: int, before: int, after: int) -> bytes:
    positions = range(-before, size + after)
    if mode == "reflect":
        _check_reflection(size, before, after)
        index = [abs(p) if p < size else 2 * (size - 1) - p for p in positions]
    elif mode == "replicate":
        index = [min(max(p, 0), size - 1) for p in positions]
    elif mode == "circular":
        index = [p % size for p in positions]
    else:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return array.array("q", index).tobytes()


def pad(input, pad, mode: str = "constant", value=None) -> Tensor:
    """Pads the ends of the last dimensions; negative padding crops. `pad` starts with the last dimension's two ends."""
    pad = list(pad)
    if any(isinstance(n, str) for n in pad):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, got {pad}")
    if len(pad) % 2 or len(pad) // 2 > input.dim():
        raise RuntimeError(f"Padding length must be even and at most twice the number of dimensions, got {pad}")
    if mode == "constant":
        return _ops.pad(input, pad, 0.0 if value is None else value)
    if mode == "circular" and min(pad, default=0) < 0:  # cropped elements must not reappear
        input = _ops.pad(input, [min(n, 0) for n in pad], 0.0)
        pad = [max(n, 0) for n in pad]
    if mode == "circular" and any(n > input.shape[-1 - i // 2] for i, n in enumerate(pad)):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    while pad and not (pad[-1] or pad[-2]):
        pad = pad[:-2]
    dims = range(input.dim() - len(pad) // 2, input.dim())
    indices = [pad_index(mode, int(input.shape[d]), *pad[2 * (dims.stop - 1 - d):][:2], input.device) for d in dims]
    planes = input.shape[: dims.start]
    is_known = all(type(n) is int for n in planes)  # a recording for several sizes must not depend on one of them
    if len(dims) > 1 and is_known and math.prod(planes) >= _MANY_PLANES:  # indexing all dimensions at once is faster
        return input[(..., *(p.reshape(-1, *[1] * (len(dims) - 1 - i)) for i, p in enumerate(indices)))]
    for d, p in zip(dims, indices, strict=True):
        input = input.index_select(d, p)
    return input
