"""What modules with quantized weights share: quantization of weights, scales of results, states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from .... import _C
from .... import _quantized_names as q
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from ....nn import Module
from ...quantization._ranges import integer_limits, is_per_tensor


def qparams(observer: Module) -> tuple[float, int]:
    """The scale and zero point of an observer's tensor as numbers. Waits for them."""
    scale, point = observer.calculate_qparams()
    return float(scale), int(point)


def quantize_weight(weight: Tensor, observer: Module) -> Tensor:
    """A weight quantized with the scales that its observer found, within the observer's range of integers."""
    scale, point = observer.calculate_qparams()
    observer = getattr(observer, "activation_post_process", observer)
    dtype = q.qint8
    if is_per_tensor(observer.qscheme):
        made = create.quantize_per_tensor(weight, float(scale), int(point), dtype)
    elif observer.qscheme == q.per_channel_affine_float_qparams:
        dtype = observer.dtype
        made = create.quantize_per_channel(weight, scale.to(_C.float32), point.to(_C.float32), observer.ch_axis, dtype)
    else:
        made = create.quantize_per_channel(weight, scale.to(_C.float64), point.to(_C.int64), observer.ch_axis, dtype)
    low, high = integer_limits(dtype)
    if dtype == q.quint4x2 or (observer.quant_min <= low and observer.quant_max >= high):
        return made
    integers = made.int_repr().clamp(observer.quant_min, observer.quant_max)
    if is_per_tensor(observer.qscheme):
        return create._make_per_tensor_quantized_tensor(integers, float(scale), int(point))
    return create._make_per_channel_quantized_tensor(integers, scale, point, observer.ch_axis)


def hide_packed_params(module: Module, hidden: type | tuple[type, ...]) -> str:
    """The text of a module without the modules that hold packed weights."""
    lines = [module.extra_repr()] if module.extra_repr() else []
    shown = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in module._modules.items() if not isinstance(child, hidden)]
    if not shown:
        return f"{module._get_name()}({''.join(lines)})"
    return f"{module._get_name()}(\n  " + "\n  ".join([*lines, *shown]) + "\n)"


class ScaledResult(Module):
    """A module whose results have a scale and a zero point, which are numbers, and tensors in its state."""

    scale: float
    zero_point: int

    def _take_scale(self, observer: Module | None) -> None:
        """Uses the scale that an observer found, if it observed the range of integers."""
        if observer is not None and observer.dtype != _C.float32:
            self.scale, self.zero_point = qparams(observer)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = _C.tensor(self.scale)
        destination[prefix + "zero_point"] = _C.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        del strict  # PyTorch's quantized modules do not report names as missing
        self.scale, self.zero_point = float(state_dict.pop(prefix + "scale")), int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)


class WeightedQuantizedModule(ABC, Module):
    """A module with a quantized weight."""

    @classmethod
    @abstractmethod
    def from_reference(cls, ref_module: Module, output_scale: float, output_zero_point: int) -> Module:
        """The module of a reference module, which computes with the dequantized weight."""




class BufferedScale(Module):
    """A module whose results have a scale and a zero point, which are tensors of its state."""

    scale: Tensor
    zero_point: Tensor

    def _add_scale(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        self.register_buffer("scale", _C.tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", _C.tensor(zero_point, device=device, dtype=dtype))
        self._known: tuple = ()

    def _numbers(self) -> tuple[float, int]:
        """The scale and zero point as numbers. Waits once after a change."""
        buffers = (self.scale, self.zero_point)
        key = (*buffers, *(b._version for b in buffers))
        known, numbers = self._known or ((None,) * 4, None)
        if known[0] is not key[0] or known[1] is not key[1] or known[2:] != key[2:]:
            numbers = (float(self.scale), int(self.zero_point))
            self._known = (key, numbers)
        return numbers


set_module("teletensor.ao.nn.quantized.modules.utils", WeightedQuantizedModule)
