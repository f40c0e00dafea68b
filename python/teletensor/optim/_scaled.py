"""Updates with coefficients that are numbers, or numbers in the engine: tensors without dimensions, in traced steps.

Both give the same bits: a tensor has the dtype in which the operators compute (coefficients_for), and the operators round as
often, because a product with 1 is exact. Parameters of 16 bits without dimensions differ by rounding: they promote.
"""

from __future__ import annotations

from .. import _C
from .._C import Tensor

Coefficient = float | Tensor


def coefficients_for(x: Tensor, numbers: list[Tensor]) -> list[Tensor]:
    """The numbers in the dtype in which operators on x compute: float32 for those of 16 bits."""
    dtype = _C.float32 if x.dtype in (_C.float16, _C.bfloat16) else x.dtype
    return [number.to(dtype) for number in numbers]


def add(x: Tensor, other: Tensor, alpha: Coefficient) -> Tensor:
    """x + alpha * other."""
    if not isinstance(alpha, Tensor):
        return x.add(other, alpha=alpha)
    wide = alpha.dtype
    return x.to(wide).addcmul(other.to(wide), alpha).to(x.dtype)


def add_(x: Tensor, other: Tensor, alpha: Coefficient) -> Tensor:
    """x += alpha * other."""
    if not isinstance(alpha, Tensor):
        return x.add_(other, alpha=alpha)
    return x.addcmul_(other, alpha) if x.dtype == alpha.dtype else x.copy_(add(x, other, alpha))


def addcmul_(x: Tensor, a: Tensor, b: Tensor, value: Coefficient) -> Tensor:
    """x += value * a * b."""
    if not isinstance(value, Tensor):
        return x.addcmul_(a, b, value=value)
    wide = value.dtype
    if x.dtype == wide:
        return x.addcmul_(a * value, b)
    return x.copy_(x.to(wide).addcmul(a.to(wide) * value, b.to(wide)))


def addcdiv(x: Tensor, a: Tensor, b: Tensor, value: Coefficient) -> Tensor:
    """x + value * a / b."""
    if not isinstance(value, Tensor):
        return x.addcdiv(a, b, value=value)
    wide = value.dtype
    return x.to(wide).addcdiv(a.to(wide) * value, b.to(wide)).to(x.dtype)


def addcdiv_(x: Tensor, a: Tensor, b: Tensor, value: Coefficient) -> Tensor:
    """x += value * a / b."""
    if not isinstance(value, Tensor):
        return x.addcdiv_(a, b, value=value)
    return x.addcdiv_(a * value, b) if x.dtype == value.dtype else x.copy_(addcdiv(x, a, b, value))


def lerp(x: Tensor, end: Tensor, weight: Coefficient) -> Tensor:
    """x + weight * (end - x)."""
    if not isinstance(weight, Tensor):
        return x.lerp(end, weight)
    wide = weight.dtype
    return x.to(wide).lerp(end.to(wide), weight.expand(x.shape)).to(x.dtype)


def lerp_(x: Tensor, end: Tensor, weight: Coefficient) -> Tensor:
    """x += weight * (end - x)."""
    if not isinstance(weight, Tensor):
        return x.lerp_(end, weight)
    return x.lerp_(end, weight.expand(x.shape)) if x.dtype == weight.dtype else x.copy_(lerp(x, end, weight))


def select(condition: Coefficient, chosen: Tensor, other: Tensor) -> Tensor:
    """chosen where the condition is not 0, a tensor without dimensions; a number decides at once."""
    if isinstance(condition, Tensor):
        return _C.torch.where(condition != 0, chosen, other)
    return chosen if condition else other
