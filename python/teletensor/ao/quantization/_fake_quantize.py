"""FakeQuantize: rounds to the numbers that integers represent, with the scale and zero point of an observer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ... import _C
from ... import _quantized_names as q
from ..._C import Tensor
from ..._lazy import set_module
from ..._quantized.fake import fused_moving_avg_obs_fake_quant
from ...nn import Module
from ._observer_base import with_args
from ._observers import FixedQParamsObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver
from ._ranges import integer_limits, is_per_channel, is_per_tensor

_FLAGS = ("fake_quant_enabled", "observer_enabled")


class FakeQuantizeBase(ABC, Module):
    """A module that simulates a quantization; observation and rounding can be turned on and off."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", _C.tensor([1], dtype=_C.uint8))
        self.register_buffer("observer_enabled", _C.tensor([1], dtype=_C.uint8))
        # The buffers' values, read again only after a buffer was replaced or changed: (buffer, its version, value).
        self._flags = {name: (getattr(self, name), getattr(self, name)._version, True) for name in _FLAGS}

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Returns the rounded tensor."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """(scale, zero point) of the observed values."""

    def _set_enabled(self, name: str, enabled: bool) -> None:
        buffer = getattr(self, name)
        buffer.fill_(1 if enabled else 0)
        self._flags[name] = (buffer, buffer._version, bool(enabled))

    def _enabled(self, name: str) -> bool:
        """The value of a flag's buffer. Waits only after something else than the methods of this class changed it."""
        buffer = getattr(self, name)
        known, version, value = self._flags[name]
        if known is not buffer or version != buffer._version:
            value = bool(buffer[0] == 1)
            self._flags[name] = (buffer, buffer._version, value)
        return value

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Rounds, or not."""
        self._set_enabled("fake_quant_enabled", enabled)

    def disable_fake_quant(self) -> None:
        """Does not round."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Observes, or not."""
        self._set_enabled("observer_enabled", enabled)

    def disable_observer(self) -> None:
        """Does not observe."""
        self.enable_observer(False)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        for name in ("scale", "zero_point"):  # one per channel after the first observation
            if prefix + name in state_dict and state_dict[prefix + name].shape != getattr(self, name).shape:
                setattr(self, name, _C.torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *args)

    with_args = classmethod(with_args)


def fake_quantized(x: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None, low: int, high: int) -> Tensor:
    """Rounds to (n - zero_point) * scale with low <= n <= high; the gradient is 1 between these numbers, else 0."""
    shape = [1] * x.dim()
    if axis is not None:
        shape[axis] = -1
    if not zero_point.is_floating_point():
        shape = [] if axis is None else shape
        return _C.ops.fake_quantize_affine(x, scale.detach().reshape(shape), zero_point.detach().reshape(shape), low, high)
    scales, points = scale.detach().reshape(shape), zero_point.detach().reshape(shape).to(x.dtype)
    scaled = x.detach() * scales.reciprocal()
    rounded = (scaled + points).round()
    values = (rounded.clamp(low, high) - points) * scales
    inside = (rounded >= low) & (rounded <= high)
    values = values.to(x.dtype)
    return _C.torch.where(inside, values + (x - x.detach()), values)


class FakeQuantize(FakeQuantizeBase):
    """Observes the input's range with an observer, and rounds the input to the grid of this range.

    Args:
        observer: the class of the observer, whose arguments are further keywords.
        quant_min, quant_max: the smallest and largest integer.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None, quant_max: int | None = None,
        is_dynamic: bool = False, **observer_kwargs: Any,
    ):  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            keywords = getattr(getattr(observer, "p", None), "keywords", {})
            limits = integer_limits(keywords.get("dtype", observer_kwargs.get("dtype", q.quint8)))
            if limits[0] > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > limits[1]:
                raise AssertionError("quant_max out of bound")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        self.quant_min, self.quant_max = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        self.is_dynamic = self.activation_post_process.is_dynamic
        self.dtype, self.qscheme = self.activation_post_process.dtype, self.activation_post_process.qscheme
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        if not (is_per_channel(self.qscheme) or is_per_tensor(self.qscheme)):
            raise AssertionError(
                f"Only per channel and per tensor quantization are supported in fake quantize got qscheme: {self.qscheme}"
            )
        self.is_per_channel = is_per_channel(self.qscheme)
        kind = _C.float32 if self.qscheme == q.per_channel_affine_float_qparams else _C.int32
        self.register_buffer("scale", _C.tensor([1.0], dtype=_C.float32))
        self.register_buffer("zero_point", _C.tensor([0], dtype=kind))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of the observed values."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - PyTorch's name
        if self._enabled("observer_enabled"):
            self.activation_post_process(X.detach())
            found = self.calculate_qparams()
            for buffer, value in zip((self.scale, self.zero_point), found):
                if buffer.shape != value.shape:
                    buffer.resize_(value.shape)
                if buffer is not value:
                    buffer.copy_(value)
            scale, zero_point = found[0], found[1].to(self.zero_point.dtype)  # the buffers may change before the backward pass
        else:
            scale, zero_point = self.scale, self.zero_point
        if not self._enabled("fake_quant_enabled"):
            return X
        axis = self.ch_axis if self.is_per_channel else None
        return fake_quantized(X, scale, zero_point, axis, self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, "
            f"zero_point={self.zero_point}"
        )


class FixedQParamsFakeQuantize(FakeQuantize):
    """A FakeQuantize whose observer has a given scale and zero point."""

    def __init__(self, observer: Any):
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self.scale, self.zero_point = self.activation_post_process.scale, self.activation_post_process.zero_point
        self._observer_ctr = observer
        if not is_per_tensor(self.qscheme):
            raise AssertionError(f"Only per tensor quantization is supported FixedQParamsFakeQuantize module, got qscheme:{self.qscheme}")

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The given (scale, zero point)."""
        return self.scale, self.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """A FakeQuantize with an observer of moving averages, which the engine computes as one operator. Its scales differ slightly
    from those of the observer: a symmetric range ends at the integer with the larger absolute value.
    """

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0, quant_max: int = 255, **observer_kwargs: Any
    ):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        for name in _FLAGS:
            flag = _C.tensor([1], dtype=_C.int64)
            self.register_buffer(name, flag)
            self._flags[name] = (flag, flag._version, True)
        self.is_symmetric_quant = self.qscheme in (q.per_tensor_symmetric, q.per_channel_symmetric)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - PyTorch's name
        observer = self.activation_post_process
        result = fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, observer.min_val, observer.max_val, self.scale, self.zero_point,
            observer.averaging_constant, self.quant_min, self.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip
        if X.numel() and self._enabled("observer_enabled"):
            observer._observed = True
        return result


def _call_if_fake_quantize(module: Any, name: str) -> None:
    if isinstance(module, FakeQuantizeBase):
        getattr(module, name)()


def enable_fake_quant(mod: Module) -> None:
    """For Module.apply: rounds."""
    _call_if_fake_quantize(mod, "enable_fake_quant")


def disable_fake_quant(mod: Module) -> None:
    """For Module.apply: does not round."""
    _call_if_fake_quantize(mod, "disable_fake_quant")


def enable_observer(mod: Module) -> None:
    """For Module.apply: observes."""
    _call_if_fake_quantize(mod, "enable_observer")


def disable_observer(mod: Module) -> None:
    """For Module.apply: does not observe."""
    _call_if_fake_quantize(mod, "disable_observer")


set_module(
    "teletensor.ao.quantization.fake_quantize",
    FakeQuantize, FakeQuantizeBase, FixedQParamsFakeQuantize, FusedMovingAvgObsFakeQuantize,
)  # fmt: skip
