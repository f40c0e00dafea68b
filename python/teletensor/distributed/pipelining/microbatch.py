"""Division of a batch into microbatches, and the inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0


class _CustomReducer:
    """Merges values of microbatches: ``reduce_fn`` is applied to ``init_value`` and the values, one after the other."""

    def __init__(self, init_value, reduce_fn: Callable[[Any, Any], Any]):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """Merges losses."""


class _Replicate:
    """Marks a value that every microbatch gets unchanged."""


class TensorChunkSpec:
    """The dimension along which a tensor is divided."""

    def __init__(self, split_dim: int):
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: Sequence[int]) -> tuple[TensorChunkSpec, ...]:
        """Returns one specification per dimension in a sequence."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """Returns one specification per dimension in a dict."""
        return {key: TensorChunkSpec(dim) for key, dim in chunk_dims.items()}


def _entries(value) -> list | None:
    """The keys of a container's entries, or None if the value is not a container."""
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, (list, tuple)) else None


def _rebuilt(like, keys: list, entries: list):
    """A container of the type of `like` with other entries."""
    if isinstance(like, dict):
        return dict(zip(keys, entries, strict=True))
    if hasattr(like, "_fields"):
        return type(like)(*entries)
    return type(like)(entries)


def _spec_of_entry(spec, value, keys: list, key):
    """The specification of one entry of a container. A TensorChunkSpec applies to all tensors in the container."""
    if isinstance(spec, TensorChunkSpec) or _is_replicate(spec):
        return spec
    if _entries(spec) != keys:
        raise ValueError(f"Argument value {value} did not have the same number of values as as chunk spec {spec}")
    return spec[key]


def _is_replicate(spec) -> bool:
    return spec is None or spec is _Replicate or isinstance(spec, _Replicate)


def _split(value, spec, chunks: int, name) -> list:
    """The value's part in each microbatch."""
    keys = _entries(value)
    if keys is not None:
        parts = [_split(value[key], _spec_of_entry(spec, value, keys, key), chunks, name) for key in keys]
        return [_rebuilt(value, keys, [part[i] for part in parts]) for i in range(chunks)]
    if not isinstance(value, Tensor) or _is_replicate(spec):
        return [value] * chunks
    if not isinstance(spec, TensorChunkSpec):
        raise TypeError(f"Unrecognized chunk spec: {spec}")
    if value.size(spec.split_dim) < chunks:
        raise RuntimeError(
            f"Arg {name} on chunking dimension has a size of {value.size(spec.split_dim)}, smaller than the number of "
            f"chunks {chunks}"
        )
    return list(_C.torch.tensor_split(value, chunks, spec.split_dim))


def split_args_kwargs_into_chunks(
    args: tuple, kwargs: dict[str, Any] | None, chunks: int, args_chunk_spec: tuple | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple], list[dict]]:  # fmt: skip
    """Divides arguments into microbatches.

    Args:
        args, kwargs: the arguments; containers are divided entry by entry.
        chunks: the number of microbatches.
        args_chunk_spec, kwargs_chunk_spec: a TensorChunkSpec per argument; by default dimension 0. Values that are not
            tensors are the same in all microbatches.

    Returns:
        The positional and the keyword arguments of each microbatch.

    Raises:
        RuntimeError: a tensor is smaller than the number of microbatches.
    """
    kwargs = kwargs or {}
    default = TensorChunkSpec(DEFAULT_CHUNK_DIM)
    args_spec = (default,) * len(args) if args_chunk_spec is None else tuple(args_chunk_spec)
    kwargs_spec = dict.fromkeys(kwargs, default) if kwargs_chunk_spec is None else kwargs_chunk_spec
    if len(args_spec) != len(args):
        raise AssertionError(f"expected {len(args)} entries in args_chunk_spec, got {len(args_spec)}")
    if set(kwargs_spec) != set(kwargs):
        raise AssertionError(f"args_dict.keys() = {list(kwargs)} args_chunk_spec.keys() = {list(kwargs_spec)}")
    split_args = [_split(value, spec, chunks, i) for i, (value, spec) in enumerate(zip(args, args_spec, strict=True))]
    split_kwargs = {key: _split(value, kwargs_spec[key], chunks, key) for key, value in kwargs.items()}
    return (
        [tuple(parts[i] for parts in split_args) for i in range(chunks)],
        [{key: parts[i] for key, parts in split_kwargs.items()} for i in range(chunks)],
    )


def merge_chunks(chunks: list, chunk_spec=None):
    """Merges the values of all microbatches: concatenates tensors along the dimension of their TensorChunkSpec.

    Args:
        chunks: one value per microbatch, all of the same structure.
        chunk_spec: the specifications, in the values' structure; by default dimension 0 for all tensors. Values without a
            specification must be equal in all microbatches.
    """
    first = chunks[0]
    if isinstance(chunk_spec, _CustomReducer):
        result = chunk_spec.init_value
        for value in chunks:
            result = chunk_spec.reduce_fn(result, value)
        return result
    keys = _entries(first)
    if any(_entries(value) != keys for value in chunks):
        raise ValueError(f"Chunk {first} did not match chunk spec {chunk_spec}")
    if keys is not None:
        if chunk_spec is not None and _entries(chunk_spec) != keys and not isinstance(chunk_spec, TensorChunkSpec):
            raise ValueError(f"Chunk {first} did not match chunk spec {chunk_spec}")
        entries = []
        for key in keys:
            is_leaf = chunk_spec is None or isinstance(chunk_spec, TensorChunkSpec)
            entries.append(merge_chunks([value[key] for value in chunks], chunk_spec if is_leaf else chunk_spec[key]))
        return _rebuilt(first, keys, entries)
    if isinstance(first, Tensor) and not _is_replicate(chunk_spec or TensorChunkSpec(DEFAULT_CHUNK_DIM)):
        dim = DEFAULT_CHUNK_DIM if chunk_spec is None else chunk_spec.split_dim
        return _C.torch.cat(chunks, dim) if len(chunks) > 1 else first
    if not isinstance(first, Tensor) and any(value != first for value in chunks):
        raise ValueError(f"expected equal values in all microbatches, got {chunks}")
    return first
