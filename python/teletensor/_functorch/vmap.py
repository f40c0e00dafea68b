"""The steps of torch.vmap under PyTorch's names. Libraries replace some of them, to map over containers of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _transforms
from .._C import Tensor
from .._layouts import require_strided, sparse_coo
from ..func import tree
from ..func._batched import Batched, VmapLevel
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["Tensor", "_broadcast_to_and_flatten", "tree_flatten", "tree_unflatten"]


def _is_dim(value: Any) -> bool:
    return value is None or isinstance(value, int)


def _get_name(func: Callable) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _level_of(vmap_level: int) -> VmapLevel:
    levels = _transforms.running.levels
    if not 1 <= vmap_level <= len(levels):
        raise RuntimeError(f"[vmap] expected a level of the {len(levels)} vmaps that are running, counted from 1, got {vmap_level}")
    return levels[vmap_level - 1]


def _validate_and_get_batch_size(flat_in_dims: list[int | None], flat_args: list) -> int:
    """The size of the mapped dimensions."""
    sizes = set()
    for x, dim in zip(flat_args, flat_in_dims):
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


def _process_batched_inputs(in_dims: Any, args: tuple, func: Callable) -> tuple[int, list[int | None], list, Any]:
    """Checks the arguments: the size of the batch, each leaf's mapped dimension, the leaves, and their structure."""
    flat_args, args_spec = tree_flatten(args)
    flat_in_dims = tree.broadcast(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, _is_dim)
    mapped = [x for x, dim in zip(flat_args, flat_in_dims) if dim is not None]
    require_strided("vmap", *(x for x in mapped if getattr(x, "layout", None) != sparse_coo))
    return _validate_and_get_batch_size(flat_in_dims, flat_args), flat_in_dims, flat_args, args_spec


def _add_batch_dim(tensor: Tensor, in_dim: int, vmap_level: int) -> Batched:
    """The tensor as the mapped function sees it: without the dimension."""
    return _level_of(vmap_level).wrap(tensor.movedim(in_dim, 0))


def _create_batched_inputs(flat_in_dims: list[int | None], flat_args: list, vmap_level: int, args_spec: Any) -> Any:
    """The arguments of the mapped function."""
    inputs = [x if dim is None else _add_batch_dim(x, dim, vmap_level) for x, dim in zip(flat_args, flat_in_dims)]
    return tree_unflatten(inputs, args_spec)


def _remove_batch_dim(tensor: Tensor, vmap_level: int, batch_size: int, out_dim: int) -> Tensor:
    """The values of all entries, with the batch as the dimension `out_dim`."""
    if not -tensor.dim() - 1 <= out_dim <= tensor.dim():
        expected = f"expected to be in range of [{-tensor.dim() - 1}, {tensor.dim()}], but got {out_dim}"
        raise IndexError(f"Dimension out of range ({expected})")
    return _level_of(vmap_level).expanded(tensor).movedim(0, out_dim)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None) -> Any:
    """An output with its batch; an output without an out_dim as it is."""
    if out_dim is None:
        if _level_of(vmap_level).has(batched_output):
            raise ValueError("vmap: an output with an out_dim of None differs between the entries: give its out_dim")
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(f"vmap: expected tensors as outputs with an out_dim, got {type(batched_output).__name__}")
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable) -> Any:
    """The results of the mapped function with their batches."""
    dims = tree.broadcast(tuple(out_dims) if isinstance(out_dims, list) else out_dims, batched_outputs, _is_dim)
    outputs, spec = tree_flatten(batched_outputs)
    name = _get_name(func)
    return tree_unflatten([_maybe_remove_batch_dim(name, o, vmap_level, batch_size, d) for o, d in zip(outputs, dims)], spec)


def lazy_load_decompositions() -> None:
    """Does nothing: no rule of vmap has to be loaded. Captured graphs call it."""


def _flatten_chunks_output(outputs: list, out_dims: Any) -> Any:
    """Joins the results of chunks of the batch."""
    from .. import _C

    if len(outputs) == 1:
        return outputs[0]
    dims = tree.broadcast(tuple(out_dims) if isinstance(out_dims, list) else out_dims, outputs[0], _is_dim)
    columns = zip(*map(tree.leaves, outputs))
    return tree.rebuild(outputs[0], [parts[0] if d is None else _C.torch.cat(parts, d) for parts, d in zip(columns, dims)])
