"""Gradient clipping."""

from __future__ import annotations

import math

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _grads(parameters) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


@no_grad
def clip_grad_norm_(parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach=None):
    """Scales the gradients down to a total norm of max_norm; returns the previous norm.

    Waits for the engine only if ``error_if_nonfinite`` is set. With parameters of torch.distributed.fsdp, the norm is that
    of all ranks' gradients, and all ranks must call it.
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = _grads(parameters)
    if any(hasattr(p, "_unit") for p in parameters):
        from ...distributed.fsdp._norm import norm_over_ranks

        total = norm_over_ranks(parameters, float(norm_type))
    elif not grads:
        return _C.tensor(0.0)
    else:
        norms = _C.torch.stack([g.detach().norm(norm_type) for g in grads])
        total = norms.max() if norm_type == math.inf else norms.norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients is non-finite, so it cannot be clipped.")
    factor = (max_norm / (total + 1e-6)).clamp_max(1.0)
    for g in grads:
        g.detach().mul_(factor)
    return total


clip_grad_norm = clip_grad_norm_


@no_grad
def clip_grad_value_(parameters, clip_value: float, foreach=None) -> None:
    """Clamps the gradients to +-clip_value."""
    for g in _grads(parameters):
        g.detach().clamp_(-clip_value, clip_value)
