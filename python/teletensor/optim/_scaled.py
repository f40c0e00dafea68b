"""Updates with coefficients that are numbers, or numbers in the engine: tensors without dimensions, in traced steps.

Both give the same bits: the operators round as often, because a product with 1 is exact.
"""

from __future__ import annotations

from .. import _C
from .._C import Tensor

Coefficient = float | Tensor


def add(x: Tensor, other: Tensor, alpha: Coefficient) -> Tensor:
    """x + alpha * other."""
    return x.addcmul(other, alpha.to(x.dtype)) if isinstance(alpha, Tensor) else x.add(other, alpha=alpha)


def add_(x: Tensor, other: Tensor, alpha: Coefficient) -> Tensor:
    """x += alpha * other."""
    return x.addcmul_(other, alpha.to(x.dtype)) if isinstance(alpha, Tensor) else x.add_(other, alpha=alpha)


def addcmul_(x: Tensor, a: Tensor, b: Tensor, value: Coefficient) -> Tensor:
    """x += value * a * b."""
    return x.addcmul_(a * value, b) if isinstance(value, Tensor) else x.addcmul_(a, b, value=value)


def addcdiv_(x: Tensor, a: Tensor, b: Tensor, value: Coefficient) -> Tensor:
    """x += value * a / b."""
    return x.addcdiv_(a * value, b) if isinstance(value, Tensor) else x.addcdiv_(a, b, value=value)


def lerp_(x: Tensor, end: Tensor, weight: Coefficient) -> Tensor:
    """x += weight * (end - x)."""
    return x.lerp_(end, weight.to(x.dtype).expand(x.shape)) if isinstance(weight, Tensor) else x.lerp_(end, weight)


def select(condition: Coefficient, chosen: Tensor, other: Tensor) -> Tensor:
    """chosen where the condition is not 0, a tensor without dimensions; a number decides at once."""
    if isinstance(condition, Tensor):
        return _C.torch.where(condition != 0, chosen, other)
    return chosen if condition else other
