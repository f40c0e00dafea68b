"""Operators on host values, computed in the client with NumPy.

They compute what models derive from sizes (Shape, Gather, Concat, Reshape, ...), so that nothing waits for the engine and
sizes stay symbolic in a trace. Arrays of dtype object hold ints and SymInts, or strings.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _types, _values
from .._call import Call


def _limited(shape: Any, what: str) -> None:
    _values.bounded(math.prod(int(n) for n in shape), what)


def _aligned(call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The second operand for operator sets before 7, which broadcast at an axis."""
    if call.version < 7 and "axis" in call.attributes:
        return b.reshape(b.shape + (1,) * (a.ndim - b.ndim - call.get("axis")))
    return b


def _binary(function: Any) -> Any:
    return lambda call, a, b: np.asarray(function(a, _aligned(call, a, b)))


def _div(call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    b = _aligned(call, a, b)
    if a.dtype == object or b.dtype == object:
        return np.asarray(a // b)
    if a.dtype.kind in "iu":
        return np.where(b == 0, 0, np.trunc(np.divide(a, b)) if abs(a).max(initial=0) < 1 << 52 else a // b).astype(
            a.dtype
        )
    return np.asarray(a / b)


def _mod(call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.fmod(a, b) if call.get("fmod", 0) else a % b)


def _pow(_call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(a**b).astype(a.dtype)


def _many(function: Any) -> Any:
    return lambda call, *inputs: np.asarray(functools.reduce(function, inputs))


def _compare(function: Any) -> Any:
    return lambda call, a, b: np.asarray(function(a, _aligned(call, a, b)), dtype=bool)


def _axes(call: Call, axes: Any, name: str = "axes") -> list[int] | None:
    if axes is None:
        return call.get(name)
    return [int(a) for a in np.asarray(axes).reshape(-1)]


def _unsqueeze(call: Call, x: np.ndarray, axes: Any = None) -> np.ndarray:
    axes = _axes(call, axes) or []
    rank = x.ndim + len(axes)
    for axis in sorted(a % rank for a in axes):
        x = np.expand_dims(x, axis)
    return x


def _squeeze(call: Call, x: np.ndarray, axes: Any = None) -> np.ndarray:
    axes = _axes(call, axes)
    return np.squeeze(x) if axes is None else np.squeeze(x, tuple(axes))


def _slice(
    call: Call, x: np.ndarray, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
) -> np.ndarray:
    starts = call.get("starts") if starts is None else starts.reshape(-1)
    ends = call.get("ends") if ends is None else ends.reshape(-1)
    axes = _axes(call, axes)
    steps = [1] * len(starts) if steps is None else steps.reshape(-1)
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes or range(len(starts)), steps):
        start, end, step = int(start), int(end), int(step)
        size = x.shape[axis]
        if step < 0:
            begin = min(start + size if start < 0 else start, size - 1)
            stop = end + size if end < 0 else end
            index[axis] = slice(begin, None if stop < 0 else stop, step) if begin >= 0 else slice(0, 0)
        else:
            index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _gather(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.asarray(np.take(x, indices.astype(np.int64), axis=call.get("axis", 0)))


def _concat(call: Call, *inputs: np.ndarray) -> np.ndarray:
    return np.concatenate(inputs, axis=call.get("axis", 1))


def _reshape(call: Call, x: np.ndarray, shape: Any = None) -> np.ndarray:
    shape = [int(n) for n in (call.get("shape") if shape is None else shape)]
    if not call.get("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


def _cast(call: Call, x: np.ndarray) -> np.ndarray:
    to = call.get("to")
    if isinstance(to, str):
        to = getattr(_types, to)
    if x.dtype == object and to in (_types.INT64, _types.INT32):
        return x
    return x.astype(_types.numpy_of(to))


def _expand(_call: Call, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    dims = np.broadcast_shapes(x.shape, tuple(int(n) for n in shape))
    _limited(dims, "Expand")
    return np.broadcast_to(x, dims).copy()


def _range(_call: Call, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    _limited([max(math.ceil((limit.item() - start.item()) / delta.item()), 0)], "Range")
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype if start.dtype != object else np.int64)


def _reduce(function: Any) -> Any:
    def reduce(call: Call, x: np.ndarray, axes: Any = None) -> np.ndarray:
        axes = _axes(call, axes)
        if not axes and call.get("noop_with_empty_axes", 0):
            return x
        keep = bool(call.get("keepdims", 1))
        found = np.asarray(function(x, axis=tuple(axes) if axes else None, keepdims=keep))
        return found if found.dtype == object else found.astype(x.dtype)

    return reduce


def _split(call: Call, x: np.ndarray, split: Any = None) -> tuple:
    axis = call.get("axis", 0)
    split = _axes(call, split, "split")
    if split is None:
        parts = call.get("num_outputs", len(call.outputs))
        size = -(-x.shape[axis] // parts)
        split = [size] * (parts - 1) + [x.shape[axis] - size * (parts - 1)]
    return tuple(np.split(x, np.cumsum(split)[:-1], axis=axis))


def _transpose(call: Call, x: np.ndarray) -> np.ndarray:
    return np.transpose(x, call.get("perm"))


def _tile(_call: Call, x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    _limited([n * int(r) for n, r in zip(x.shape, repeats)], "Tile")
    return np.tile(x, tuple(int(r) for r in repeats))


def _flatten(call: Call, x: np.ndarray) -> np.ndarray:
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), -1)


def _where(_call: Call, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition.astype(bool), a, b)


def _scatter_nd(call: Call, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    if call.get("reduction", "none") != "none":
        raise NotImplementedError("[ScatterND] a reduction of strings or sizes is not implemented")
    found = x.copy() if updates.dtype != object else x.astype(object)
    found[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))] = updates
    return found


def _gather_nd(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    if call.get("batch_dims", 0):
        raise NotImplementedError("[GatherND] batch_dims of strings or sizes is not implemented")
    return np.asarray(x[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))])


def _gather_elements(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, indices.astype(np.int64), call.get("axis", 0))


def _cumsum(call: Call, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    if call.get("exclusive", 0) or call.get("reverse", 0) or x.dtype == object:
        raise NotImplementedError("[CumSum] only plain sums of numbers are implemented for sizes")
    return np.cumsum(x, axis=int(axis.reshape(-1)[0]), dtype=x.dtype)


def _nonzero(_call: Call, x: np.ndarray) -> np.ndarray:
    return np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(bool(x))), np.int64)


def _unique(call: Call, x: np.ndarray) -> tuple:
    axis = call.get("axis")
    _, first, inverse, counts = np.unique(
        x.astype(str) if x.dtype == object else x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.get("sorted", 1):
        order = np.argsort(first)
        rank = np.argsort(order)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return np.take(x.reshape(-1) if axis is None else x, first, axis=axis or 0), first, inverse, counts


def _compress(call: Call, x: np.ndarray, condition: np.ndarray) -> np.ndarray:
    return np.compress(condition.astype(bool), x, axis=call.get("axis"))


CLIENT = {
    "Identity": lambda call, x: x, "Add": _binary(np.add), "Sub": _binary(np.subtract), "Mul": _binary(np.multiply),
    "Div": _div, "Mod": _mod, "Pow": _pow, "Neg": lambda call, x: np.asarray(-x), "Abs": lambda call, x: np.asarray(abs(x)),
    "Min": _many(np.minimum), "Max": _many(np.maximum), "Sum": _many(np.add), "Equal": _compare(np.equal), "Greater": _compare(np.greater),
    "GreaterOrEqual": _compare(np.greater_equal), "Less": _compare(np.less), "LessOrEqual": _compare(np.less_equal),
    "And": _compare(np.logical_and), "Or": _compare(np.logical_or), "Not": lambda call, x: np.logical_not(x),
    "Where": _where, "Gather": _gather, "Slice": _slice, "Concat": _concat, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Reshape": _reshape, "Cast": _cast, "Expand": _expand, "Range": _range, "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum), "ReduceMax": _reduce(np.max), "ReduceMin": _reduce(np.min), "Split": _split,
    "Transpose": _transpose, "Tile": _tile, "Flatten": _flatten, "ScatterND": _scatter_nd, "GatherND": _gather_nd,
    "GatherElements": _gather_elements, "CumSum": _cumsum, "NonZero": _nonzero, "Unique": _unique, "Compress": _compress,
    "Floor": lambda call, x: np.asarray(np.floor(x)), "Ceil": lambda call, x: np.asarray(np.ceil(x)),
    "Sqrt": lambda call, x: np.asarray(np.sqrt(x)),
}  # fmt: skip
