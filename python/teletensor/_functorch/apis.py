"""torch._functorch.apis: torch.func's transforms of functions, and chunk_vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..func.batching import vmap
from ..func.derivatives import grad, grad_and_value
from .vmap import _process_batched_inputs

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2) -> Callable:
    """vmap() that computes the batch in `chunks` parts, one after the other. The other arguments are those of vmap()."""

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size = _process_batched_inputs(in_dims, args, func)[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))(*args, **kwargs)

    return vmap(func, in_dims, out_dims, randomness) if chunks == 1 else mapped
