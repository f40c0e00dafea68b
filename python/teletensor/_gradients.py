"""Clears the gradients of many leaves, for optimizers and modules."""

from __future__ import annotations

from collections.abc import Iterable

from . import _C
from ._C import Tensor


def clear(leaves: Iterable[Tensor], set_to_none: bool = True) -> None:
    """Clears the gradients in one instruction or, if ``set_to_none`` is False, fills each with zeros."""
    held = [p for p in leaves if p.grad is not None]
    if not held:
        return
    if set_to_none:
        for p in filter(_C._is_wrapper, held):
            p.grad = None
        plain = [p for p in held if not _C._is_wrapper(p)]
        _C.set_grads(plain, [None] * len(plain))
    else:
        for p in held:
            p.grad.detach().zero_()
