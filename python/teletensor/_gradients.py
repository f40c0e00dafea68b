"""Clears the gradients of many leaves, for optimizers and modules."""

from __future__ import annotations

from collections.abc import Iterable

from . import _C
from ._C import Tensor
from ._grad_mode import no_grad


def clear(leaves: Iterable[Tensor], set_to_none: bool = True) -> None:
    """Clears the gradients in one instruction or, if ``set_to_none`` is False, fills each with zeros."""
    # A traced function clears them in every run, whether there are any during the trace or not.
    is_traced = set_to_none and _C.is_tracing()
    held = [p for p in leaves if is_traced or p.grad is not None]
    if not held:
        return
    if set_to_none:
        for p in filter(_C._is_wrapper, held):
            p.grad = None
        plain = [p for p in held if not _C._is_wrapper(p)]
        _C.set_grads(plain, [None] * len(plain))
    else:
        # Not through detach(), because a traced function cannot write to what it detaches.
        with no_grad():
            for p in held:
                p.grad.zero_()
