"""Sizes, and operators that rearrange elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import teletensor as torch
from teletensor.fx.experimental._recorded import RecordedTensor
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _types, _values
from .._call import Call, keeps, keeps_types, sees_types
from .._values import Narrow, Sizes

Tensor = torch.Tensor
_HOST_FILL = 64  # a constant of up to so many elements is made in the client: models compute sizes with it


@keeps()
@sees_types
def _shape(call: Call, x: Any) -> Any:
    shape = _values.shape_of(x)
    rank = len(shape)
    start, end = call.get("start", 0), call.get("end", rank)
    start = max(start + rank, 0) if start < 0 else min(start, rank)
    end = max(end + rank, 0) if end < 0 else min(end, rank)
    found = _values.sizes(shape[start:end])
    # Of a recorded tensor, also constants are not computed with in the client: it would read weights beside them.
    return Sizes(found.astype(object)) if isinstance(x, RecordedTensor) and isinstance(found, np.ndarray) else found


@keeps()
@sees_types
def _size(_call: Call, x: Any) -> Any:
    count: Any = 1
    for n in _values.shape_of(x):
        count = count * n
    found = _values.sizes([count])
    return Sizes(found.array.reshape(())) if isinstance(found, Sizes) else found.reshape(())


@keeps()
@sees_types
def _identity(_call: Call, x: Any) -> Any:
    return x


def target_shape(shape: list, x: Tensor, allow_zero: bool) -> list:
    """The sizes of Reshape, with 0 replaced by the input's size."""
    if allow_zero:
        if -1 in [n for n in shape if _values.fixed(n)] and 0 in [n for n in shape if _values.fixed(n)]:
            raise ValueError(f"[Reshape] expected no -1 beside 0 with allowzero, got {shape}")
        return shape
    return [x.shape[i] if _values.fixed(n) and n == 0 else n for i, n in enumerate(shape)]


@keeps(1)
@keeps_types
def _reshape(call: Call, x: Tensor, shape: Any = None) -> Tensor:
    dims = call.need("shape") if shape is None else _values.ints(shape)
    return x.reshape(target_shape(dims, x, bool(call.get("allowzero", 0))))


@keeps_types
def _flatten(call: Call, x: Tensor) -> Tensor:
    axis = call.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    if axis == 1 and x.dim() > 1:
        return torch.flatten(x, 1)
    rows = 1
    for n in x.shape[:axis]:
        rows = rows * n
    columns = 1
    for n in x.shape[axis:]:
        columns = columns * n
    return x.reshape([rows, columns])


@keeps_types
def _transpose(call: Call, x: Tensor) -> Tensor:
    return x.permute(call.get("perm") or list(reversed(range(x.dim()))))


@keeps(1)
@keeps_types
def _squeeze(call: Call, x: Tensor, axes: Any = None) -> Tensor:
    dims = call.get("axes") if axes is None else _values.ints(axes)
    if dims is None:
        return x.squeeze()
    dims = [d % x.dim() for d in dims]
    for d in dims:
        if x.shape[d] != 1:
            raise ValueError(f"[Squeeze] expected size 1 in dimension {d}, got {x.shape[d]}")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in dims])


@keeps(1)
@keeps_types
def _unsqueeze(call: Call, x: Tensor, axes: Any = None) -> Tensor:
    dims = call.need("axes") if axes is None else _values.ints(axes)
    rank = x.dim() + len(dims)
    for d in sorted(d % rank for d in dims):
        x = x.unsqueeze(d)
    return x


@keeps_types
def _concat(call: Call, *inputs: Tensor) -> Tensor:
    return torch.cat(inputs, call.get("axis", 1))


@keeps(1)
@keeps_types
def _split(call: Call, x: Tensor, split: Any = None) -> tuple:
    axis = call.get("axis", 0)
    parts = call.get("split") if split is None else _values.ints(split)
    if parts is None:
        count = len(call.outputs)
        if call.get("num_outputs", count) != count:
            raise ValueError(f"[Split] expected {call.get('num_outputs')} outputs (num_outputs), the node names {count}")
        size = (x.shape[axis] + count - 1) // count
        parts = [size] * (count - 1) + [x.shape[axis] - size * (count - 1)]
    if len(parts) != len(call.outputs):
        raise ValueError(f"[Split] expected a size for each of {len(call.outputs)} outputs, got {len(parts)} sizes")
    return tuple(torch.split(x, parts, axis))


@keeps(1)
@keeps_types
def _expand(_call: Call, x: Tensor, shape: Any) -> Tensor:
    dims = _values.ints(shape)
    rank = max(len(dims), x.dim())
    dims = [1] * (rank - len(dims)) + dims
    own = [1] * (rank - x.dim()) + list(x.shape)
    target = [o if _values.fixed(d) and d == 1 else d for d, o in zip(dims, own)]
    return x.expand(target)


@keeps(1, 2)
@keeps_types
def _tile(call: Call, x: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    if call.version < 6:
        times = [1] * x.dim()
        times[_values.integer(axis)] = _values.integer(repeats)
    else:
        times = _values.ints(repeats)
    return x.repeat(times) if x.dim() else x


@keeps()
def _constant_of_shape(call: Call, shape: Any) -> Any:
    dims = _values.ints(shape)
    value = call.get("value")
    array = np.zeros(1, np.float32) if value is None else _values.plain(value)
    if array.size != 1:
        raise ValueError(f"[ConstantOfShape] expected one number, got {array.size}")
    narrow = value.type if isinstance(value, Narrow) else None
    if _values.is_host(shape) and not narrow and all(_values.fixed(d) for d in dims) and math.prod(dims) <= _HOST_FILL:
        return np.full(dims, array.reshape(-1)[0], array.dtype)
    number = narrow or _types.type_of_array(array)
    if number in (_types.E4M3FN, _types.E5M2, _types.BFLOAT16):
        return (
            call.tensor(array.reshape([1] * len(dims))).expand(dims)
            if 0 not in dims
            else call.tensor(array)[:0].reshape(dims)
        )
    found = torch.full(dims, array.reshape(-1)[0].item(), dtype=_types.dtype_of(number), device=call.device)
    return Narrow(found, narrow) if narrow else found


@keeps()
def _range(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    first = _values.array(start)
    if isinstance(start, Sizes) or first.dtype.kind in "iuO":
        a, b, c = (_values.integer(v) for v in (start, limit, delta))
        dtype = torch.int64 if first.dtype == object else _types.DTYPES[_types.type_of_array(first)]
        if _values.fixed(c) and c == 0:
            raise ValueError("[Range] expected a step other than 0")
        if all(_values.fixed(v) for v in (a, b, c)) and (b - a) * c <= 0:
            return torch.zeros([0], dtype=dtype, device=call.device)
        if _values.fixed(c) and c == 1:  # a size that may be symbolic
            counted = torch.arange(b if _values.fixed(a) and a == 0 else b - a, dtype=dtype, device=call.device)
            return counted if _values.fixed(a) and a == 0 else counted + a
        return torch.arange(a, b, c, dtype=dtype, device=call.device)
    a, b, c = (_values.array(v).reshape(-1)[0].item() for v in (start, limit, delta))
    count = max(math.ceil((b - a) / c), 0)
    dtype = _types.DTYPES[_values.type_of(start)]
    return (torch.arange(count, dtype=torch.float64, device=call.device) * c + a).to(dtype)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@keeps(1, 2, 3)
@keeps_types
def _pad(call: Call, x: Tensor, pads: Any = None, value: Any = None, axes: Any = None) -> Tensor:
    mode = call.get("mode", "constant")
    amounts = (call.get("pads") or call.get("paddings")) if pads is None else _values.ints(pads)
    fill = (
        call.get("value", 0.0) if pads is None else 0 if value is None else _values.array(value).reshape(-1)[0].item()
    )
    dims = list(range(x.dim())) if axes is None else [d % x.dim() for d in _values.ints(axes)]
    if len(amounts) != 2 * len(dims):
        raise ValueError(f"[Pad] expected {2 * len(dims)} amounts, got {len(amounts)}")
    before = [0] * x.dim()
    after = [0] * x.dim()
    for d, a, b in zip(dims, amounts[: len(dims)], amounts[len(dims) :]):
        before[d], after[d] = a, b
    for d in range(x.dim()):  # negative amounts remove elements
        low, high = (-a if _values.fixed(a) and a < 0 else 0 for a in (before[d], after[d]))
        if low or high:
            x = x.narrow(d, low, x.shape[d] - low - high)
            before[d], after[d] = before[d] + low, after[d] + high
    if mode == "constant":
        flat = [n for d in reversed(range(x.dim())) for n in (before[d], after[d])]
        if x.dtype == torch.bool:
            return F.pad(x.to(torch.uint8), flat, value=int(fill)).to(torch.bool)
        return F.pad(x, flat, value=fill)
    for d in range(x.dim()):
        if before[d] or after[d]:
            index = _padded_indices(int(x.shape[d]), int(before[d]), int(after[d]), mode)
            x = x.index_select(d, torch.from_numpy(index).to(x.device))
    return x


def _padded_indices(size: int, before: int, after: int, mode: str) -> np.ndarray:
    if mode not in _PAD_MODES:
        raise ValueError(f"[Pad] expected a mode of {', '.join(_PAD_MODES)}, got {mode!r}")
    _values.bounded(size + max(before, 0) + max(after, 0), "Pad")
    if size == 0:
        raise ValueError(f"[Pad] expected elements to repeat with the mode {mode!r}, got none")
    places = np.arange(-before, size + after)
    if mode == "edge":
        return places.clip(0, size - 1)
    if mode == "wrap":
        return places % size
    period = max(2 * (size - 1), 1)
    places = abs(places) % period
    return np.where(places >= size, period - places, places)


def _depth_to_space(call: Call, x: Tensor) -> Tensor:
    size = call.need("blocksize")
    n, c, h, w = x.shape
    if call.get("mode", "DCR") == "DCR":
        return (
            x.reshape([n, size, size, c // size**2, h, w])
            .permute(0, 3, 4, 1, 5, 2)
            .reshape([n, c // size**2, h * size, w * size])
        )
    return (
        x.reshape([n, c // size**2, size, size, h, w])
        .permute(0, 1, 4, 2, 5, 3)
        .reshape([n, c // size**2, h * size, w * size])
    )


def _space_to_depth(call: Call, x: Tensor) -> Tensor:
    size = call.need("blocksize")
    n, c, h, w = x.shape
    cut = x.reshape([n, c, h // size, size, w // size, size])
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return cut.permute(*order).reshape([n, c * size**2, h // size, w // size])


@keeps(1)
def _trilu(call: Call, x: Tensor, k: Any = None) -> Tensor:
    diagonal = 0 if k is None else int(_values.integer(k))
    return torch.triu(x, diagonal) if call.get("upper", 1) else torch.tril(x, diagonal)


def _eye_like(call: Call, x: Tensor) -> Tensor:
    dtype = _types.dtype_of(call.get("dtype")) if "dtype" in call.attributes else x.dtype
    rows, columns = x.shape
    k = call.get("k", 0)
    places = torch.arange(columns, device=x.device) - torch.arange(rows, device=x.device).unsqueeze(1)
    return (places == k).to(dtype)


@keeps(1)
@keeps_types
def _center_crop_pad(call: Call, x: Tensor, shape: Any) -> Tensor:
    axes = call.get("axes") or list(range(x.dim()))
    for axis, wanted in zip(axes, _values.ints(shape)):
        axis = axis % x.dim()
        size = int(x.shape[axis])
        if size > wanted:
            x = x.narrow(axis, (size - wanted) // 2, wanted)
        elif size < wanted:
            flat = [0] * (2 * (x.dim() - 1 - axis)) + [(wanted - size) // 2, wanted - size - (wanted - size) // 2]
            x = F.pad(x, flat)
    return x


def _reverse_sequence(call: Call, x: Tensor, lengths: Tensor) -> Tensor:
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    size = x.shape[time]
    places = torch.arange(size, device=x.device).unsqueeze(1)
    lengths = lengths.unsqueeze(0)
    index = torch.where(places < lengths, lengths - 1 - places, places)  # time, batch
    index = index if time < batch else index.t()
    view = [1] * x.dim()
    view[time], view[batch] = size, x.shape[batch]
    return torch.gather(x, time, index.reshape(view).expand(x.shape))


TABLE: dict[str, tuple] = {
    "Shape": ((1, _shape),), "Size": ((1, _size),), "Identity": ((1, _identity),), "Reshape": ((1, _reshape),),
    "Flatten": ((1, _flatten),), "Transpose": ((1, _transpose),), "Squeeze": ((1, _squeeze),), "Unsqueeze": ((1, _unsqueeze),),
    "Concat": ((1, _concat),), "Split": ((1, _split),), "Expand": ((8, _expand),), "Tile": ((1, _tile),),
    "ConstantOfShape": ((9, _constant_of_shape),), "Range": ((11, _range),), "Pad": ((1, _pad),),
    "DepthToSpace": ((1, _depth_to_space),), "SpaceToDepth": ((1, _space_to_depth),), "Trilu": ((14, _trilu),),
    "EyeLike": ((9, _eye_like),), "CenterCropPad": ((18, _center_crop_pad),), "ReverseSequence": ((10, _reverse_sequence),),
}  # fmt: skip
