"""Operators that read and write elements by index."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from .. import _values
from .._call import Call, keeps, keeps_types

Tensor = torch.Tensor


def _positive(indices: Tensor, size: Any) -> Tensor:
    """Indices with negative ones counted from the end."""
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + size, indices)


@keeps(1)
@keeps_types
def _gather(call: Call, x: Tensor, indices: Any) -> Tensor:
    axis = call.get("axis", 0) % max(x.dim(), 1)
    if _values.is_host(indices):
        found = _values.array(indices)
        if found.ndim == 0:
            return x.select(axis, _values.integer(indices))
        if found.dtype != object and (found >= 0).all():
            picked = x.index_select(axis, call.tensor(found.reshape(-1)).to(torch.int64))
            return picked.reshape([*x.shape[:axis], *found.shape, *x.shape[axis + 1 :]]) if found.ndim != 1 else picked
        indices = call.tensor(indices)
    places = _positive(indices, x.shape[axis])
    if axis == 0 and x.dim() == 2 and x.dtype.is_floating_point:
        return torch.nn.functional.embedding(places, x)
    picked = x.index_select(axis, places.reshape([-1]))
    return picked if places.dim() == 1 else picked.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


@keeps_types
def _gather_elements(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    axis = call.get("axis", 0)
    return torch.gather(x, axis, _positive(indices, x.shape[axis]))


_OUTSIDE = 1 << 62  # a place that no tensor has, so that the engine refuses it


def _flat_places(indices: Tensor, shape: Any) -> Tensor:
    """The place in a tensor of these sizes, flattened, of each row of indices."""
    total = None
    is_inside = None
    for i, size in enumerate(shape):
        part = _positive(indices[..., i], size)
        inside = (part >= 0) & (part < size)
        is_inside = inside if is_inside is None else is_inside & inside
        total = part if total is None else total * size + part
    if total is None:
        return None
    return torch.where(is_inside, total, torch.full_like(total, _OUTSIDE))


@keeps_types
def _gather_nd(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    batch = call.get("batch_dims", 0)
    depth = indices.shape[-1]
    rest = list(x.shape[batch + depth :])
    head = list(x.shape[:batch])
    places = _flat_places(indices, x.shape[batch : batch + depth])
    if batch:
        count = 1
        for n in head:
            count = count * n
        rows = 1
        for n in x.shape[batch : batch + depth]:
            rows = rows * n
        offsets = (torch.arange(count, device=x.device) * rows).reshape(head + [1] * (places.dim() - batch))
        places = places + offsets
    flat = x.reshape([-1, *rest])
    return flat.index_select(0, places.reshape([-1])).reshape([*places.shape, *rest])


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@keeps_types
def _scatter_elements(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    axis, reduction = call.get("axis", 0), call.get("reduction", "none")
    places = _positive(indices, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, places, updates)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"[ScatterElements] expected a reduction of none, add, mul, max or min, got {reduction!r}")
    return x.scatter_reduce(axis, places, updates, _REDUCTIONS[reduction])


@keeps_types
def _scatter_nd(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    reduction = call.get("reduction", "none")
    depth = indices.shape[-1]
    rest = list(x.shape[depth:])
    places = _flat_places(indices, x.shape[:depth]).reshape([-1])
    flat = x.reshape([-1, *rest])
    rows = updates.reshape([-1, *rest])
    if reduction == "none":
        return flat.index_copy(0, places, rows).reshape(x.shape)
    spread = places.reshape([-1] + [1] * len(rest)).expand(rows.shape)
    return flat.scatter_reduce(0, spread, rows, _REDUCTIONS[reduction]).reshape(x.shape)


@keeps(1, 2, 3, 4)
@keeps_types
def _slice(call: Call, x: Tensor, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Tensor:
    starts = call.need("starts") if starts is None else _values.ints(starts)
    ends = call.need("ends") if ends is None else _values.ints(ends)
    dims = call.get("axes") if axes is None else _values.ints(axes)
    steps = [1] * len(starts) if steps is None else _values.ints(steps)
    for start, end, axis, step in zip(starts, ends, dims or range(len(starts)), steps):
        axis = axis % x.dim()
        step = int(step)
        if step > 0:
            index = [slice(None)] * axis + [slice(start, end, step)]
            x = x[tuple(index)]
            continue
        if step == 0:
            raise ValueError("[Slice] expected steps other than 0")
        size = int(x.shape[axis])
        _values.bounded(size, "Slice")
        begin = min(max(int(start) + size if start < 0 else int(start), 0), size - 1)
        stop = max(int(end) + size if end < 0 else int(end), -1)
        places = np.arange(begin, stop, step) if begin >= 0 else np.zeros(0, np.int64)
        x = x.index_select(axis, torch.from_numpy(places.astype(np.int64)).to(x.device))
    return x


@keeps(1, 2)
def _one_hot(call: Call, indices: Tensor, depth: Any, values: Any) -> Tensor:
    axis, count = (
        call.get("axis", -1),
        int(_values.numbers(depth)[0]) if not isinstance(depth, _values.Sizes) else _values.integer(depth),
    )
    off, on = (call.tensor(values)[i] for i in (0, 1))
    places = torch.remainder(indices.to(torch.int64), count)
    inside = (indices >= -count) & (indices < count)
    axis = axis % (indices.dim() + 1)
    shape = [1] * (indices.dim() + 1)
    shape[axis] = count
    same = (places.unsqueeze(axis) == torch.arange(count, device=indices.device).reshape(shape)) & inside.unsqueeze(
        axis
    )
    return torch.where(same, on, off)


@keeps(1)
def _topk(call: Call, x: Tensor, k: Any = None) -> tuple:
    count = call.need("k") if k is None else _values.integer(k)
    axis, largest = call.get("axis", -1), bool(call.get("largest", 1))
    order = torch.sort(x, dim=axis, descending=largest, stable=True)
    return order[0].narrow(axis, 0, count), order[1].narrow(axis, 0, count)


def _nonzero(_call: Call, x: Tensor) -> Tensor:
    return torch.nonzero(x).t() if x.dim() else torch.zeros([0, int(bool(x))], dtype=torch.int64, device=x.device)


@keeps_types
def _compress(call: Call, x: Tensor, condition: Tensor) -> Tensor:
    axis = call.get("axis")
    if axis is None:
        x, axis = x.reshape([-1]), 0
    return x.index_select(axis, torch.nonzero(condition).reshape([-1]))


def _unique(call: Call, x: Tensor) -> tuple:
    axis = call.get("axis")
    found, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape([-1])
    size = inverse.shape[0]
    first = torch.full([counts.shape[0]], size, dtype=torch.int64, device=x.device)
    first = first.scatter_reduce(0, inverse, torch.arange(size, device=x.device), "amin")
    if not call.get("sorted", 1):
        order = torch.argsort(first)
        rank = torch.argsort(order)
        found = found.index_select(axis or 0, order)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return found, first, inverse, counts


@keeps(2)
def _tensor_scatter(call: Call, past: Tensor, update: Tensor, starts: Any = None) -> Tensor:
    axis = call.get("axis", -2) % past.dim()
    length, size = update.shape[axis], past.shape[axis]
    places = torch.arange(length, device=past.device).unsqueeze(0)
    if starts is not None:
        places = places + call.tensor(starts).reshape([-1, 1])
    places = places.expand([past.shape[0], length])
    if call.get("mode", "linear") == "circular":
        places = torch.remainder(places, size)
    view = [1] * past.dim()
    view[0], view[axis] = past.shape[0], length
    return past.scatter(axis, places.reshape(view).expand(update.shape), update)


TABLE: dict[str, tuple] = {
    "Gather": ((1, _gather),), "GatherElements": ((11, _gather_elements),), "GatherND": ((11, _gather_nd),),
    "Scatter": ((9, _scatter_elements),), "ScatterElements": ((11, _scatter_elements),), "ScatterND": ((11, _scatter_nd),),
    "Slice": ((1, _slice),), "OneHot": ((9, _one_hot),), "TopK": ((1, _topk),), "NonZero": ((9, _nonzero),),
    "Compress": ((9, _compress),), "Unique": ((11, _unique),), "TensorScatter": ((24, _tensor_scatter),),
}  # fmt: skip
