"""Helpers of distributions: broadcasting, and conversion between probabilities and logits."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._functions import _FLOATS, broadcast_tensors

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]

euler_constant = 0.57721566490153286060


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Converts tensors and numbers to tensors of a common shape."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    options = {"dtype": like.dtype if like is not None and like.is_floating_point() else _C.default_dtype()}
    options["device"] = None if like is None else like.device
    return tuple(broadcast_tensors(*(v if isinstance(v, Tensor) else _C.tensor(v, **options) for v in values)))


def _standard_normal(shape, dtype, device) -> Tensor:
    return _C.torch.randn(*shape, dtype=dtype, device=device) if shape else _C.torch.randn([], dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, count: int) -> Tensor:
    """Sums over the last `count` dimensions."""
    return value if count == 0 else value.reshape(*value.shape[: value.dim() - count], -1).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probabilities to [eps, 1 - eps], where eps is finfo(dtype).eps."""
    eps = _FLOATS[probs.dtype][1]
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Converts logits to probabilities."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Converts probabilities to log probabilities or, if binary, log odds."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:  # noqa: N801 - PyTorch's name
    """A property that is computed at first use and then stored."""

    def __init__(self, wrapped):
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.wrapped(instance)
        return value
