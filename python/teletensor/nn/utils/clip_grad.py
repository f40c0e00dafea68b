"""Gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]

# Returns the norm, of a given order, of gradients that are divided among ranks. torch.distributed.fsdp, which divides them, sets it.
norm_over_ranks: Callable[[list, float], Tensor] | None = None


def _grads(parameters) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def _require_finite(total: Tensor, norm_type: float) -> None:
    if not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )


@no_grad
def get_total_norm(tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach=None) -> Tensor:
    """The norm of all tensors together. Waits for the engine only if ``error_if_nonfinite`` is set."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return _C.tensor(0.0)
    norm_type = float(norm_type)
    norms = _C.torch.stack([t.detach().norm(norm_type).to(tensors[0].device) for t in tensors])
    total = norms.max() if norm_type == math.inf else norms.norm(norm_type)
    if error_if_nonfinite:
        _require_finite(total, norm_type)
    return total


@no_grad
def clip_grads_with_norm_(parameters, max_norm: float, total_norm: Tensor, foreach=None) -> None:
    """Scales the gradients as if their total norm were total_norm, down to max_norm."""
    grads = _grads(parameters)
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp_max(1.0)
    for g in grads:
        g.detach().mul_(factor.to(g.device))


@no_grad
def clip_grad_norm_(parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach=None):
    """Scales the gradients down to a total norm of max_norm; returns the previous norm.

    Waits for the engine only if ``error_if_nonfinite`` is set. With parameters of torch.distributed.fsdp, the norm is that
    of all ranks' gradients, and all ranks must call it.
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = _grads(parameters)
    if any(hasattr(p, "_unit") for p in parameters):
        total = norm_over_ranks(parameters, float(norm_type))
    else:
        total = get_total_norm(grads, norm_type)
    if error_if_nonfinite:
        _require_finite(total, norm_type)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


clip_grad_norm = clip_grad_norm_
_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_  # names of PyTorch 2.5


@no_grad
def clip_grad_value_(parameters, clip_value: float, foreach=None) -> None:
    """Clamps the gradients to +-clip_value."""
    for g in _grads(parameters):
        g.detach().clamp_(-clip_value, clip_value)
