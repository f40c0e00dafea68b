"""torch.distributed._composable.checkpoint_activation: checkpoint, which recomputes a module's activations in backward."""

from __future__ import annotations

from typing import Any

from ...nn.modules.module import Module
from ...utils.checkpoint import checkpoint as _checkpoint
from .contract import contract


@contract()
def checkpoint(module: Module, **kwargs: Any) -> Module:
    """Recomputes the module's activations in backward. Changes neither its class nor the names of its parameters.

    Args:
        kwargs: those of ``torch.utils.checkpoint.checkpoint``; only ``use_reentrant=False``.
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use torch.utils.checkpoint.checkpoint instead."
        )
    unknown = set(kwargs) - {"preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
    if unknown:
        raise ValueError("Unexpected keyword arguments: " + ",".join(sorted(unknown)))
    inner = module.forward

    def forward(*args: Any, **values: Any) -> Any:
        return _checkpoint(inner, *args, use_reentrant=False, **kwargs, **values)

    module.forward = forward
    return module
