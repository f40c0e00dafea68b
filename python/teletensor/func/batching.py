"""vmap: maps a function over a batch.

The function runs once, with tensors that have one entry's sizes and the values of all entries (_batched.py). Operators
compute all entries at once; those without a rule (_batch_rules.py) are called once per entry, and say so once.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._layouts import require_strided
from .._library.dispatch import engine_call
from .._library.engine_operators import operator_named
from ..utils._python_dispatch import TorchDispatchMode
from . import tree
from ._batched import VmapLevel, draw
from ._transformed import Transformed, compute, innermost


def _is_dim(value: Any) -> bool:
    return value is None or isinstance(value, int)


def _batch_size(args: list, dims: list) -> int:
    sizes = set()
    for x, dim in zip(args, dims):
        if dim is None:
            continue
        if not isinstance(x, Tensor):
            raise ValueError(f"[vmap] expected in_dim=None for an input of type {type(x).__name__}, got {dim}")
        if not -x.dim() <= dim < x.dim():
            raise ValueError(f"[vmap] expected in_dim to be one of the input's {x.dim()} dimensions, got {dim}")
        sizes.add(x.shape[dim])
    if not sizes:
        raise ValueError("[vmap] expected at least one input with an in_dim other than None, got none")
    if len(sizes) > 1:
        raise ValueError(f"[vmap] expected all inputs to have the same size in the mapped dimension, got {sorted(sizes)}")
    return sizes.pop()


class _RandomMode(TorchDispatchMode):
    """Random operators in a function that is mapped, also without mapped arguments, such as torch.rand()."""

    runs_backward = True  # handlers need not see the operators of backward passes

    def __init__(self, level: VmapLevel):
        super().__init__()
        self._level = level

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        call = engine_call(args)
        if call is not None and (op := operator_named(call[0])).is_random:
            inner = innermost([*call[1], *(call[2] or ())])
            if inner is not None and inner.number > self._level.number:
                with self:  # for the random operators by which it computes this one
                    return Transformed.__torch_dispatch__(func, types, args, kwargs)
            results = draw(op, call[1], call[2], self._level)
            return results[0] if len(results) == 1 else tuple(results)
        if any(issubclass(t, Transformed) for t in types):
            return Transformed.__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    def run_engine_call(self, name: str, arguments: list, into: list | None) -> Any:
        """The same for an operator of the engine, by its own name. Other handlers receive calls without mapped tensors."""
        op, inner = operator_named(name), innermost([*arguments, *(into or ())])
        if op.is_random:
            return NotImplemented
        if inner is not None:
            return compute(name, arguments, into)
        if _C._len_torch_dispatch_stack() or _C._is_dispatched((*arguments, *(into or ()))):
            return NotImplemented
        results = op.call(arguments, into)
        return None if op.num_outputs == 0 else results[0] if op.num_outputs == 1 else tuple(results)


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Returns a function that maps `func` over a dimension of its arguments and stacks the results.

    Keyword arguments are not mapped: every entry receives them unchanged.

    Args:
        in_dims: the mapped dimension of each input, in the arguments' structure; None for an input that is not mapped.
        out_dims: the position of the batch dimension in each output.
        randomness: "error": random operators raise RuntimeError; "different": each entry has its own numbers; "same": all
            entries have the same numbers.
        chunk_size: the number of entries to compute at once; by default all.
    Raises:
        ValueError: an input lacks its mapped dimension, the mapped dimensions' sizes differ, the batch is empty, or an
            output with an out_dim of None differs between the entries.
        RuntimeError: `func` reads the values of a mapped tensor, or writes in place to a tensor that is not mapped.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any):
        given = tree.leaves(args)
        dims = tree.broadcast(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, _is_dim)
        require_strided("vmap", *(x for x, dim in zip(given, dims) if dim is not None))
        size = _batch_size(given, dims)
        if size == 0:
            raise ValueError("[vmap] expected a batch of at least one entry, got 0")
        values = [x if dim is None else x.movedim(dim, 0) for x, dim in zip(given, dims)]
        step = chunk_size or size
        chunks = []
        for start in range(0, size, step):
            part = [v if dim is None else v[start : start + step] for v, dim in zip(values, dims)] if step < size else values
            chunks.append(_run(func, args, part, dims, kwargs, out_dims, randomness, min(step, size - start)))
        output, columns, places = chunks[0][0], list(zip(*(c[1] for c in chunks))), chunks[0][2]
        return tree.rebuild(output, [_join(column, dim) for column, dim in zip(columns, places)])

    return mapped


def _run(func: Callable, args: Any, values: list, dims: list, kwargs: dict, out_dims: Any, randomness: str, size: int) -> tuple:
    """Maps over one chunk. Returns the output's structure, the outputs with their batch, and their out_dims."""
    with VmapLevel(size, randomness) as level, _RandomMode(level):
        wrapped = [v if dim is None else level.wrap(v) for v, dim in zip(values, dims)]
        output = func(*tree.rebuild(args, wrapped), **kwargs)
    places = tree.broadcast(tuple(out_dims) if isinstance(out_dims, list) else out_dims, output, _is_dim)
    return output, [_unwrapped(level, o, dim) for o, dim in zip(tree.leaves(output), places)], places


def _unwrapped(level: VmapLevel, output: Any, dim: int | None) -> Any:
    if dim is None:
        if level.has(output):
            raise ValueError("vmap: an output with an out_dim of None differs between the entries: give its out_dim")
        return output
    if not isinstance(output, Tensor):
        raise ValueError(f"vmap: expected tensors as outputs with an out_dim, got {type(output).__name__}")
    if not -output.dim() - 1 <= dim <= output.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-output.dim() - 1}, {output.dim()}], but got {dim})"
        )
    return level.expanded(output).movedim(0, dim)


def _join(parts: tuple, dim: int | None) -> Any:
    return parts[0] if len(parts) == 1 or dim is None else _C.torch.cat(parts, dim)
