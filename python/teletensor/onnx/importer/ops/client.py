"""Operators on host values, computed in the client with NumPy.

They compute what models derive from sizes (Shape, Gather, Concat, Reshape, ...), so that nothing waits for the engine and
sizes stay symbolic in a trace. Arrays of dtype object hold ints and SymInts, or strings. A function returns NotImplemented for
what only the operator of the engine computes.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import teletensor as torch

from .. import _types, _values
from .._call import Call

LARGEST = 1 << 16  # elements: larger arrays are computed by the engine


def _is_large(shape: Any, what: str) -> bool:
    """Whether the engine is to make a result.

    Raises:
        ValueError: nothing should make it.
    """
    return _values.bounded(math.prod(int(n) for n in shape), what) > LARGEST


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
        return np.asarray(_divided(a, b))
    if a.dtype.kind in "iu":
        down = np.asarray(a // b)  # 0 for divisions by 0
        inexact = (down * b != a) & ((a < 0) != (b < 0)) & (b != 0)
        return np.asarray(down + inexact.astype(a.dtype))
    return np.asarray(a / b)


def _quotient(a: Any, b: Any) -> Any:
    """Towards 0. A symbolic number keeps the sign that it has when the graph is recorded, or the result is exact for both."""
    if not _values.fixed(a) and _values.is_negative(a) and _values.fixed(b):
        positive = abs(b)
        found = torch.sym_max(a, 0) // positive - torch.sym_max(-a, 0) // positive
        return found if b > 0 else -found
    if _values.fixed(a) and a < 0:
        return _quotient(-a, -b) if _values.fixed(b) and b < 0 else -((-a) // b)
    return -(a // -b) if _values.fixed(b) and b < 0 else a // b


_divided = np.frompyfunc(_quotient, 2, 1)


def _mod(call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.fmod(a, b) if call.get("fmod", 0) else a % b)


def _pow(_call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == object:
        return NotImplemented
    if b.dtype.kind == "i" and a.dtype.kind in "iu" and (b < 0).any():
        return NotImplemented
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
            begin = min(max(start + size if start < 0 else start, 0), size - 1)
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
    if to == _types.STRING or to in _types.NARROW or to in _types.SMALL_FLOATS or _has_text(x):
        return NotImplemented
    if x.dtype == object and to in (_types.INT64, _types.INT32):
        return x
    return x.astype(_types.numpy_of(to))


def _has_text(x: np.ndarray) -> bool:
    return x.dtype == object and any(isinstance(n, str) for n in x.flat)


def _expand(_call: Call, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    dims = np.broadcast_shapes(x.shape, tuple(int(n) for n in shape))
    if _is_large(dims, "Expand"):
        return NotImplemented
    return np.broadcast_to(x, dims).copy()


def _range(_call: Call, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    if _is_large([max(math.ceil((limit.item() - start.item()) / delta.item()), 0)], "Range"):
        return NotImplemented
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype if start.dtype != object else np.int64)


def _reduce(function: Any) -> Any:
    def reduce(call: Call, x: np.ndarray, axes: Any = None) -> np.ndarray:
        axes = _axes(call, axes)
        if not axes and call.get("noop_with_empty_axes", 0):
            return x
        keep = bool(call.get("keepdims", 1))
        if x.size == 0:
            return NotImplemented
        found = np.asarray(function(x, axis=tuple(axes) if axes else None, keepdims=keep))
        return found if found.dtype == object else found.astype(x.dtype)

    return reduce


def _split(call: Call, x: np.ndarray, split: Any = None) -> tuple:
    axis = call.get("axis", 0)
    split = _axes(call, split, "split")
    if split is None:
        parts = len(call.outputs)
        if call.get("num_outputs", parts) != parts:
            return NotImplemented
        size = -(-x.shape[axis] // parts)
        split = [size] * (parts - 1) + [x.shape[axis] - size * (parts - 1)]
    if len(split) != len(call.outputs) or any(n < 0 for n in split) or sum(split) != x.shape[axis]:
        raise ValueError(
            f"[Split] expected {len(call.outputs)} sizes whose sum is {x.shape[axis]}, got {[int(n) for n in split[:8]]}"
        )
    return tuple(np.split(x, np.cumsum(split)[:-1], axis=axis))


def _transpose(call: Call, x: np.ndarray) -> np.ndarray:
    return np.transpose(x, call.get("perm"))


def _tile(_call: Call, x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    if _is_large([n * int(r) for n, r in zip(x.shape, repeats)], "Tile"):
        return NotImplemented
    return np.tile(x, tuple(int(r) for r in repeats))


def _flatten(call: Call, x: np.ndarray) -> np.ndarray:
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), -1)


def _where(_call: Call, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition.astype(bool), a, b)


def _scatter_nd(call: Call, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    if call.get("reduction", "none") != "none":
        return NotImplemented
    found = x.copy() if updates.dtype != object else x.astype(object)
    found[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))] = updates
    return found


def _gather_nd(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    if call.get("batch_dims", 0):
        return NotImplemented
    return np.asarray(x[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))])


def _gather_elements(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    axis = call.get("axis", 0) % x.ndim
    own = tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(indices.shape))
    if indices.ndim != x.ndim or any(d != axis and n > x.shape[d] for d, n in enumerate(indices.shape)):
        raise ValueError(f"[GatherElements] expected indices within the sizes {x.shape}, got sizes {indices.shape}")
    return np.take_along_axis(x[own], indices.astype(np.int64), axis)


def _cumsum(call: Call, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    if call.get("exclusive", 0) or call.get("reverse", 0) or x.dtype == object:
        return NotImplemented
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


_BROADCAST = frozenset({"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "Sum", "Equal", "Greater", "GreaterOrEqual", "Less",
                        "LessOrEqual", "And", "Or", "Where"})  # fmt: skip
_PICK = frozenset({"Gather", "GatherND"})


def is_small(op: str, values: list) -> bool:
    """Whether inputs and results are so small that the client computes an operator."""
    shapes = [_values.shape_of(v) for v in values if v is not None]
    sizes = [math.prod(s) for s in shapes]
    if any(n > LARGEST for n in sizes):
        return False
    if op in _PICK and len(sizes) == 2:
        return sizes[0] * sizes[1] <= 1 << 24
    if op in _BROADCAST and len(shapes) > 1:
        try:
            return math.prod(np.broadcast_shapes(*shapes)) <= LARGEST
        except ValueError:  # the operator tells, or it belongs to an old set that broadcasts in its own way
            return sum(n > 1 for n in sizes) < 3 and math.prod(sizes) <= 1 << 24
    return True


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
