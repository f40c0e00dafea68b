"""torch._C._functorch: the tensors that the transforms of torch.func pass to functions. grad and vjp pass ordinary tensors."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from .._functorch.predispatch import _add_batch_dim, _remove_batch_dim, _vmap_decrement_nesting, _vmap_increment_nesting
from ..func._batched import Batched
from ..func._functionalized import Functional
from ..func._transformed import Transformed

__all__ = [
    "_add_batch_dim", "_remove_batch_dim", "_vmap_decrement_nesting", "_vmap_increment_nesting", "get_unwrapped", "is_batchedtensor",
    "is_functionaltensor", "is_functorch_wrapped_tensor", "maybe_get_bdim", "maybe_get_level",
]  # fmt: skip


def is_batchedtensor(tensor: Any) -> bool:
    """Whether vmap maps over the tensor."""
    return isinstance(tensor, Batched)


def is_functionaltensor(tensor: Any) -> bool:
    """Whether functionalize replaces the tensor's writes."""
    return isinstance(tensor, Functional)


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether a transform has passed the tensor to its function."""
    return isinstance(tensor, Transformed)


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor inside the innermost transform's; a batch is its first dimension.

    Raises:
        RuntimeError: no transform has passed the tensor to a function.
    """
    if not isinstance(tensor, Transformed):
        raise RuntimeError(f"[get_unwrapped] expected a tensor of a function transform, got {type(tensor).__name__}")
    return tensor._value


def maybe_get_bdim(tensor: Any) -> int:
    """The place of the batch among the dimensions of the tensor inside; -1 without a batch."""
    return 0 if isinstance(tensor, Batched) else -1


def maybe_get_level(tensor: Any) -> int:
    """The number of the tensor's transform, for a mapped tensor the level of its vmap; -1 without one."""
    if isinstance(tensor, Batched):
        return tensor._level.depth
    return tensor._level.number if isinstance(tensor, Transformed) else -1
