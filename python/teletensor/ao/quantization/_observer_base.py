"""The common parts of observers: their ranges, and the scale and zero point of a range of numbers."""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from typing import Any, Callable

from ... import _C
from ... import _quantized_names as q
from ..._C import Tensor
from ..._lazy import set_module
from ...nn import Module
from ._ranges import EPSILON, QUANTIZED, calculate_qmin_qmax, check_min_max_valid, qparams_of, validate_qmin_qmax

_SYMMETRIC = (q.per_tensor_symmetric, q.per_channel_symmetric)
_SCHEMES = (*_SYMMETRIC, q.per_tensor_affine, q.per_channel_affine, q.per_channel_affine_float_qparams)


class PartialWrapper:
    """A constructor with some of its arguments, among them functions that are called at each construction."""

    def __init__(self, p: Callable):
        self.p = p
        self.callable_args: dict[str, Callable[[], Any]] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        later = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **later)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> PartialWrapper:
        """The constructor with further arguments."""
        return PartialWrapper(functools.partial(self, **kwargs))

    def with_callable_args(self, **kwargs: Callable[[], Any]) -> PartialWrapper:
        """The constructor with further arguments, which these functions return at each construction."""
        result = PartialWrapper(self.p)
        result.callable_args = {**self.callable_args, **kwargs}
        return result


def with_args(cls_or_self: Any, **kwargs: Any) -> PartialWrapper:
    """A constructor with some of its arguments."""
    return PartialWrapper(functools.partial(cls_or_self, **kwargs))


def with_callable_args(cls_or_self: Any, **kwargs: Callable[[], Any]) -> PartialWrapper:
    """A constructor with arguments that these functions return at each construction."""
    return PartialWrapper(functools.partial(cls_or_self)).with_callable_args(**kwargs)


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

    with_args = classmethod(with_args)
    with_callable_args = classmethod(with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """An observer of the range of values, for uniform quantization.

    Args:
        dtype: of the integers; qscheme: whether 0 is in the middle of the range, per tensor or per channel.
        reduce_range: uses one bit less.
        quant_min, quant_max: the smallest and largest integer, by default those of the dtype.
        eps: the smallest scale.
    """

    _version = 3
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
        if dtype not in QUANTIZED:
            raise AssertionError(f"expected one of the dtypes {', '.join(map(str, QUANTIZED))}, got {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range)
        self._observed = False  # whether min_val and max_val are known to be a range, without waiting for their values

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of ranges. Numbers outside of a range are clamped, so it always includes 0.

        Waits for the values only if this observer has not observed a tensor itself.
        """
        if not self._observed and not check_min_max_valid(min_val, max_val):
            return _C.tensor([1.0], device=min_val.device), _C.tensor([0], device=min_val.device)
        return qparams_of(min_val, max_val, self.quant_min, self.quant_max, self.dtype, self.eps, self.has_customized_qrange, self.qscheme)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of the observed range."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        if local_metadata.get("version") in (None, 1):  # eps was no buffer then
            state_dict[prefix + "eps"] = _C.tensor([EPSILON])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)
        self._observed = False

    def reset_min_max_vals(self) -> None:
        """Forgets the observed range."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


set_module("teletensor.ao.quantization.observer", ObserverBase, UniformQuantizationObserverBase)
