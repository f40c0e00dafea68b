"""swap_tensors."""

from __future__ import annotations

import copyreg
import weakref

from .._C import Tensor
from .._grad_mode import no_grad


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges the classes, attributes, values and gradients of two leaf tensors; references to them remain valid.

    Views of the tensors keep their values.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if not t.is_leaf:
            raise RuntimeError(f"Cannot swap {name} because an operation computed it: expected two leaf tensors")
    if set(copyreg._slotnames(type(t1))) != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = type(t2), type(t1)  # raises TypeError for a Tensor and a subclass, whose layouts differ
    attributes = dict(t1.__dict__), dict(t2.__dict__)
    with no_grad():
        values, required, grads = (t1.detach(), t2.detach()), (t1.requires_grad, t2.requires_grad), (t1.grad, t2.grad)
        t1.grad = t2.grad = None
        for t, value, requires, grad, own in zip((t2, t1), values, required, grads, attributes):
            t.requires_grad = False
            t.data = value
            t.requires_grad = requires
            t.grad = grad
            t.__dict__.clear()
            t.__dict__.update(own)
