"""vmap: maps a function over a batch.

The function runs once per entry of the batch, and the results are stacked. This is correct for any function, whatever
its control flow. Entries are independent, so no round trip is needed between them. Operators are not batched: each
operator is called once per entry.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from . import tree

_running = 0  # nesting depth of vmap


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


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Returns a function that maps `func` over a dimension of its arguments and stacks the results.

    Keyword arguments are not mapped: every call receives them unchanged.

    Args:
        in_dims: the mapped dimension of each input, in the arguments' structure; None for an input that is not mapped.
        out_dims: the position of the batch dimension in each output.
        randomness: "different": each entry draws its own numbers; "same" is not implemented; "error" means "different".
        chunk_size: has no effect, since entries are computed one by one.
    Raises:
        ValueError: an input lacks its mapped dimension, the mapped dimensions' sizes differ, the batch is empty, or an
            output with an out_dim of None differs between the entries.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"[vmap] expected randomness to be 'error', 'different' or 'same', got {randomness!r}")
    if randomness == "same":
        raise NotImplementedError("[vmap] randomness='same' is not implemented")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any):
        given = tree.leaves(args)
        dims = tree.broadcast(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, _is_dim)
        size = _batch_size(given, dims)
        if size == 0:
            raise ValueError("[vmap] expected a batch of at least one entry, got 0")
        entries = [x.unbind(dim) if dim is not None else [x] * size for x, dim in zip(given, dims)]
        global _running
        _running += 1
        try:
            outputs = [func(*tree.rebuild(args, [e[i] for e in entries]), **kwargs) for i in range(size)]
        finally:
            _running -= 1
        columns = list(zip(*(tree.leaves(o) for o in outputs)))
        stack_dims = tree.broadcast(tuple(out_dims) if isinstance(out_dims, list) else out_dims, outputs[0], _is_dim)
        return tree.rebuild(outputs[0], [_stack(c, dim) for c, dim in zip(columns, stack_dims)])

    return mapped


def _stack(values: tuple, dim: int | None) -> Any:
    if dim is None:
        if any(v is not values[0] and (isinstance(v, Tensor) or v != values[0]) for v in values):
            raise ValueError("[vmap] expected an output with out_dim=None to be the same object in all entries")
        return values[0]
    if not isinstance(values[0], Tensor):
        raise ValueError(f"[vmap] expected the function to return tensors, got {type(values[0]).__name__}")
    return _C.torch.stack(list(values), dim)
