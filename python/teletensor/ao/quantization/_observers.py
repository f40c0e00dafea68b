"""Observers: of the range of a tensor, of its moving average, per channel, and those that observe nothing."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _C
from ... import _quantized_names as q
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._lazy import set_module
from ._observer_base import ObserverBase, UniformQuantizationObserverBase
from ._ranges import EPSILON, PER_CHANNEL


class MinMaxObserver(UniformQuantizationObserverBase):
    """Observes the smallest and largest number."""

    def __init__(
        self, dtype: Any = q.quint8, qscheme: Any = q.per_tensor_affine, reduce_range: bool = False, quant_min: int | None = None,
        quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPSILON, is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        if qscheme not in (q.per_tensor_affine, q.per_tensor_symmetric):
            raise NotImplementedError("MinMaxObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine.")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        if qscheme == q.per_tensor_symmetric and reduce_range and dtype == q.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")
        self.register_buffer("min_val", _C.tensor(float("inf"), **self.factory_kwargs))
        self.register_buffer("max_val", _C.tensor(float("-inf"), **self.factory_kwargs))

    @no_grad()
    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel():
            low, high = x_orig.detach().to(self.min_val.dtype).aminmax()
            self._observe(low, high)
            self._observed = True
        return x_orig

    def _observe(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(_C.torch.minimum(low, self.min_val))
        self.max_val.copy_(_C.torch.maximum(high, self.max_val))

    def reset_min_max_vals(self) -> None:
        """Forgets the observed range."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))
        self._observed = False


def _moving_average(average: Tensor, value: Tensor, constant: float) -> Tensor:
    """The moving average; the value itself if there is no average yet."""
    return _C.torch.where(_C.torch.isinf(average), value, average + constant * (value - average))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Observes the moving averages of the smallest and largest number."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: Any = q.quint8, qscheme: Any = q.per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, eps: float = EPSILON, is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of " + str(averaging_constant)
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs
        )
        self.averaging_constant = averaging_constant

    def _observe(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(_moving_average(self.min_val, low, self.averaging_constant))
        self.max_val.copy_(_moving_average(self.max_val, high, self.averaging_constant))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Observes the smallest and largest number of each index of a dimension."""

    def __init__(
        self, ch_axis: int = 0, dtype: Any = q.quint8, qscheme: Any = q.per_channel_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPSILON,
        is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        if qscheme not in PER_CHANNEL:
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        if qscheme == q.per_channel_symmetric and reduce_range and dtype == q.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")
        self.ch_axis = ch_axis
        self.register_buffer("min_val", _C.tensor([], **self.factory_kwargs))
        self.register_buffer("max_val", _C.tensor([], **self.factory_kwargs))

    @no_grad()
    def forward(self, x_orig: Tensor) -> Tensor:
        if not x_orig.numel():
            return x_orig
        rows = x_orig.detach().to(self.min_val.dtype).transpose(self.ch_axis, 0)
        low, high = rows.reshape(rows.shape[0], -1).aminmax(dim=1)
        if not self.min_val.numel():
            self.min_val.resize_(low.shape).copy_(low)
            self.max_val.resize_(high.shape).copy_(high)
        else:
            self._observe(low, high)
        self._observed = True
        return x_orig

    def _observe(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(_C.torch.minimum(low, self.min_val))
        self.max_val.copy_(_C.torch.maximum(high, self.max_val))

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        if (local_metadata.get("version") or 3) < 3:  # older names
            for name in ("min_val", "max_val"):
                if f"{prefix}{name}s" in state_dict:
                    state_dict[prefix + name] = state_dict.pop(f"{prefix}{name}s")
        for name in ("min_val", "max_val"):  # the number of channels is known after the first observation
            if prefix + name in state_dict and state_dict[prefix + name].shape != getattr(self, name).shape:
                setattr(self, name, _C.torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def reset_min_max_vals(self) -> None:
        """Discards the observed ranges."""
        self.min_val, self.max_val = _C.torch.empty(0), _C.torch.empty(0)
        self._observed = False


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Observes the moving averages of the smallest and largest number of each index of a dimension."""

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = q.quint8, qscheme: Any = q.per_channel_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None, eps: float = EPSILON,
        is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs
        )
        self.averaging_constant = averaging_constant

    def _observe(self, low: Tensor, high: Tensor) -> None:
        self.min_val.add_(low - self.min_val, alpha=self.averaging_constant)
        self.max_val.add_(high - self.max_val, alpha=self.averaging_constant)


class FixedQParamsObserver(ObserverBase):
    """Has a given scale and zero point."""

    def __init__(
        self, scale: float, zero_point: int, dtype: Any = q.quint8, qscheme: Any = q.per_tensor_affine, quant_min: int = 0,
        quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", _C.tensor([scale], dtype=_C.float32))
        self.register_buffer("zero_point", _C.tensor([zero_point], dtype=_C.int32))

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - PyTorch's name
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The given (scale, zero point)."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Observes nothing, and names the dtype of a later conversion."""

    def __init__(
        self, dtype: Any = _C.float32, custom_op_name: str = "", compute_dtype: Any = None, quant_min: int | None = None,
        quant_max: int | None = None, qscheme: Any = None, eps: float | None = None, is_dynamic: bool = False,
    ):  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = q.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.custom_op = quant_min, quant_max, custom_op_name
        self.eps = EPSILON if eps is None else eps
        if compute_dtype:  # PyTorch reads is_dynamic alone
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`. `compute_dtype` will be deprecated in a future release of PyTorch.",
                stacklevel=2,
            )

    def forward(self, x: Tensor) -> Tensor:
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> Any:
        """Raises an Exception: nothing was observed."""
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")  # noqa: TRY002 - PyTorch's type


class RecordingObserver(ObserverBase):
    """Keeps a copy of each tensor."""

    def __init__(self, dtype: Any = q.quint8):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:
        """Raises an Exception: no range is observed."""
        raise Exception("calculate_qparams should not be called for RecordingObserver")  # noqa: TRY002 - PyTorch's type

    def get_tensor_value(self) -> list[Tensor]:
        """The copies."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Observes nothing."""

    def __init__(self, dtype: Any = _C.float16, custom_op_name: str = ""):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        """Raises an Exception: nothing was observed."""
        raise Exception("calculate_qparams should not be called for NoopObserver")  # noqa: TRY002 - PyTorch's type


class ReuseInputObserver(ObserverBase):
    """Stands for the observer of an operator's input."""

    def __init__(self) -> None:
        super().__init__(q.quint8, is_dynamic=False)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        """Raises an Exception: the input's observer is used."""
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")  # noqa: TRY002 - PyTorch's type


set_module(
    "teletensor.ao.quantization.observer",
    PlaceholderObserver, FixedQParamsObserver, MinMaxObserver, MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver, NoopObserver, PerChannelMinMaxObserver, RecordingObserver, ReuseInputObserver,
)  # fmt: skip
