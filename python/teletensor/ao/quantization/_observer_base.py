"""The common parts of observers: their ranges, and the scale and zero point of a range of numbers."""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from typing import Any, Callable

from ... import _C
from ... import _quantized_names as q
from ..._C import Tensor
from ...nn import Module

EPSILON = 2.0**-23  # of float32: the smallest scale
_SYMMETRIC = (q.per_tensor_symmetric, q.per_channel_symmetric)
_SCHEMES = (*_SYMMETRIC, q.per_tensor_affine, q.per_channel_affine, q.per_channel_affine_float_qparams)
_INTEGERS = {_C.int8: (-128, 127), _C.uint8: (0, 255), _C.int16: (-(2**15), 2**15 - 1), _C.int32: (-(2**31), 2**31 - 1)}


class PartialWrapper:
    """A constructor with some of its arguments."""

    def __init__(self, p: Callable):
        self.p = p

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.p(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.p)

    def with_args(self, **kwargs: Any) -> PartialWrapper:
        """The constructor with further arguments."""
        return PartialWrapper(functools.partial(self, **kwargs))


class ObserverBase(ABC, Module):
    """A module that returns its input, and collects the statistics that quantization needs."""

    def __init__(self, dtype: Any, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Observes a tensor and returns it."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """(scale, zero point) of the observed values."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> PartialWrapper:
        """A constructor of this observer with some of its arguments."""
        return PartialWrapper(functools.partial(cls, **kwargs))


def quantization_limits(dtype: Any, quant_min: int | None, quant_max: int | None, reduce_range: bool) -> tuple[int, int]:
    """The smallest and largest integer; by default those of the dtype, with one bit less if ``reduce_range``."""
    if quant_min is not None and quant_max is not None:
        return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
    limits = dtype.limits if isinstance(dtype, q.QuantizedDType) else _INTEGERS.get(dtype)
    if limits is None:
        raise ValueError(f"expected a quantized dtype, got {dtype}")
    if reduce_range and dtype in (q.qint8, _C.int8, q.quint8, _C.uint8):
        return limits[0] // 2, limits[1] // 2
    return limits


class UniformQuantizationObserverBase(ObserverBase):
    """An observer of the range of values, for uniform quantization.

    Args:
        dtype: of the integers; qscheme: whether 0 is in the middle of the range, per tensor or per channel.
        reduce_range: uses one bit less.
        quant_min, quant_max: the smallest and largest integer, by default those of the dtype.
        eps: the smallest scale.
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, dtype: Any = q.quint8, qscheme: Any = q.per_tensor_affine, reduce_range: bool = False, quant_min: int | None = None,
        quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPSILON, is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        if qscheme not in _SCHEMES:
            raise AssertionError(f"qscheme, {qscheme}, not one of {', '.join(map(str, _SCHEMES))}")
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. reduce_range will be deprecated in a future "
                "release of PyTorch.",
                stacklevel=2,
            )
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.factory_kwargs = factory_kwargs or {}
        self.register_buffer("eps", _C.tensor([eps], **self.factory_kwargs))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange and not quant_min <= 0 <= quant_max:
            raise AssertionError("Used-specified quantization range must include 0.")
        self.quant_min, self.quant_max = quantization_limits(dtype, quant_min, quant_max, reduce_range)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of ranges. Numbers outside of a range are clamped, so it always includes 0."""
        if not min_val.numel() or not _C.torch.isfinite(min_val).all():  # nothing was observed
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=3)
            one = _C.tensor([1.0], device=min_val.device)
            return one, _C.tensor([0], device=min_val.device)
        low, high = (t.reshape(1) if t.dim() == 0 else t for t in (min_val.clamp(max=0), max_val.clamp(min=0)))
        span = float(self.quant_max - self.quant_min)
        if self.qscheme in _SYMMETRIC:
            scale = _C.torch.maximum(_C.torch.maximum(-low, high) / (span / 2), self.eps)
            middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
            unsigned = self.dtype in (q.quint8, _C.uint8)
            return scale, _C.torch.full_like(low, middle if unsigned else 0, dtype=_C.int64)
        if self.qscheme == q.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / span
            scale = _C.torch.where(scale > self.eps, scale, _C.torch.ones_like(scale))
            return scale, -min_val / scale
        scale = _C.torch.maximum((high - low) / span, self.eps)
        point = (self.quant_min - (low / scale).round()).to(_C.int32).clamp(self.quant_min, self.quant_max)
        return scale, point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of the observed range."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def reset_min_max_vals(self) -> None:
        """Forgets the observed range."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"
