"""Weights with the scale and zero point with which they are quantized."""

from __future__ import annotations

from typing import Any

from ..... import _C, nn
from ..... import _quantized_names as q
from ....._C import Tensor
from ....._lazy import set_module
from ....._quantized import create

_QUANTIZED = (q.quint8, q.qint8, q.quint4x2, q.qint32)
_CHANNELS = (q.per_channel_affine, q.per_channel_affine_float_qparams)
DEFAULT = {"qscheme": q.per_tensor_affine, "dtype": q.quint8, "scale": 1.0, "zero_point": 0}


def as_tensor(value: Any, dtype: Any, device: Any) -> Tensor:
    """A copy of a tensor, or a number as a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else _C.tensor(value, dtype=dtype, device=device)


def quantized(weight: Tensor, qscheme: Any, dtype: Any, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """A weight as a quantized tensor (or as float16)."""
    if dtype == _C.float16:
        return weight.to(dtype)
    if dtype in _QUANTIZED and qscheme == q.per_tensor_affine:
        return create.quantize_per_tensor(weight, float(scale), int(zero_point), dtype)
    if dtype in _QUANTIZED and qscheme in _CHANNELS:
        return create.quantize_per_channel(weight, scale, zero_point, axis, dtype)
    raise ValueError(f"Unsupported dtype and qscheme: {dtype}, {qscheme}")


def rounded(weight: Tensor, qscheme: Any, dtype: Any, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """The numbers that the quantized weight represents."""
    if qscheme is None:
        return weight
    made = quantized(weight.detach(), qscheme, dtype, scale, zero_point, axis)
    return made.float() if dtype == _C.float16 else made.dequantize()


class ReferenceQuantizedModule(nn.Module):
    """A module with a float weight that is rounded in each call: a mix-in after the module's class."""

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams: dict[str, Any] | None, device: Any) -> None:
        found = DEFAULT if weight_qparams is None else weight_qparams
        if found.get("is_decomposed", False):
            raise NotImplementedError(
                f"[{self._get_name()}] expected is_decomposed=False, got True: graphs of torch.export are quantized by "
                "torch.ao.quantization.quantize_pt2e"
            )
        self.weight_qscheme, self.weight_dtype, self.is_decomposed = found["qscheme"], found["dtype"], False
        if self.weight_qscheme not in (None, q.per_tensor_affine, *_CHANNELS):
            raise AssertionError(f"qscheme: {self.weight_qscheme} is not supported in reference quantized {self._get_name()}")
        used = found if self.weight_dtype in _QUANTIZED else {"scale": 1.0, "zero_point": 0}
        axis = used["axis"] if self.weight_qscheme in _CHANNELS and self.weight_dtype in _QUANTIZED else 0
        self.register_buffer("weight_scale", as_tensor(used["scale"], _C.float32, device))
        self.register_buffer("weight_zero_point", as_tensor(used["zero_point"], _C.int32, device))
        self.register_buffer("weight_axis", as_tensor(axis, _C.int32, device))
        self.weight_axis_int = int(axis)
        self.weight_quant_min, self.weight_quant_max = found.get("quant_min"), found.get("quant_max")

    def _qparams(self) -> tuple:
        return self.weight_qscheme, self.weight_dtype, self.weight_scale, self.weight_zero_point, self.weight_axis_int

    def get_weight(self) -> Tensor:
        """The numbers that the quantized weight represents."""
        return rounded(self.weight, *self._qparams())

    def get_quantized_weight(self) -> Tensor:
        """The quantized weight."""
        return quantized(self.weight.detach(), *self._qparams())

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight_qscheme"], destination[prefix + "weight_dtype"] = self.weight_qscheme, self.weight_dtype

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        del strict  # PyTorch's reference modules do not report names as missing
        self.weight_qscheme = state_dict.pop(prefix + "weight_qscheme")
        self.weight_dtype = state_dict.pop(prefix + "weight_dtype")
        for name in ("weight_scale", "weight_zero_point", "weight_axis"):
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
        self.weight_axis_int = int(self.weight_axis)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _take(self, mod: nn.Module) -> None:
        """Uses copies of a float module's weight and bias."""
        self.weight = nn.Parameter(mod.weight.detach())
        if mod.bias is not None:
            self.bias = nn.Parameter(mod.bias.detach())


set_module("teletensor.ao.nn.quantized.reference.modules.utils", ReferenceQuantizedModule)
