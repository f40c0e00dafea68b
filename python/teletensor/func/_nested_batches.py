"""vmap over the constituents of nested tensors: the function is mapped over each of them by itself."""

from __future__ import annotations

from typing import Any, Callable

from .. import _transforms
from .._C import Tensor
from .._nested.strided import from_list
from ..utils._pytree import tree_flatten
from . import tree


def _is_dim(value: Any) -> bool:
    return value is None or isinstance(value, int)


def _is_nested(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_nested


def maps_nested(in_dims: Any, args: tuple) -> bool:
    """Whether a mapped argument is a nested tensor."""
    flat, _ = tree_flatten(args)
    if not any(map(_is_nested, flat)):
        return False
    return any(d is not None and _is_nested(x) for x, d in zip(flat, tree.broadcast(_tupled(in_dims), args, _is_dim)))


def _tupled(dims: Any) -> Any:
    return tuple(dims) if isinstance(dims, list) else dims


def _require_first(dim: int | None) -> None:
    if dim not in (0, None):
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={dim}")


def map_constituents(run: Callable[[list, list, Any], Any], in_dims: Any, args: tuple, out_dims: Any, randomness: str) -> Any:
    """Calls ``run(arguments, dims, spec)`` once per constituent, with a batch of one entry. Its results become nested tensors."""
    if _transforms.running.levels:
        raise RuntimeError("Only one level of vmap is supported when vmapping over nested tensors")
    if randomness == "same":
        raise NotImplementedError("[vmap] randomness='same' is not implemented for nested tensors")
    flat, spec = tree_flatten(args)
    dims = tree.broadcast(_tupled(in_dims), args, _is_dim)
    mapped = [x.unbind() if _is_nested(x) and d is not None else x for x, d in zip(flat, dims)]
    sizes = set()
    for x, d in zip(flat, dims):
        if d is not None:
            if _is_nested(x):
                _require_first(x._dim(d))
            sizes.add(x.size(d))
    if len(sizes) > 1:
        raise ValueError(f"[vmap] expected all inputs to have the same size in the mapped dimension, got {sorted(sizes)}")
    (count,) = sizes
    if count == 0:
        raise RuntimeError("[vmap] expected nested tensors with at least one constituent")
    inner = [0 if isinstance(x, tuple) and d is not None else d for x, d in zip(mapped, dims)]

    def entry(x: Any, d: int | None, i: int) -> Any:
        return x if d is None else x[i].unsqueeze(0) if isinstance(x, tuple) else x.narrow(d, i, 1)

    outputs = [run([entry(x, d, i) for x, d in zip(mapped, inner)], inner, spec) for i in range(count)]
    where = tree.broadcast(_tupled(out_dims), outputs[0], _is_dim)
    for d in where:
        _require_first(d)
    columns = zip(*map(tree.leaves, outputs))
    joined = [parts[0] if d is None else from_list([p.squeeze(0) for p in parts], None, None) for parts, d in zip(columns, where)]
    return tree.rebuild(outputs[0], joined)
