"""Conversions to and from quantized tensors."""

from __future__ import annotations

from typing import Any

from .... import _C, nn
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from .utils import BufferedScale, qparams


class Quantize(BufferedScale):
    """Quantizes a float tensor with a scale and a zero point."""

    def __init__(self, scale: float, zero_point: int, dtype: Any, factory_kwargs: dict | None = None):
        super().__init__()
        kwargs = factory_kwargs or {}
        self.register_buffer("scale", _C.tensor([scale], **kwargs))
        self.register_buffer("zero_point", _C.tensor([zero_point], dtype=_C.int64, device=kwargs.get("device")))
        self.dtype, self._known = dtype, ()

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - PyTorch's name
        return create.quantize_per_tensor(X, *self._numbers(), self.dtype)

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Quantize:
        """The conversion in place of an observed QuantStub."""
        del use_precomputed_fake_quant
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(f"Module {type(mod).__name__} must have activation_post_process attribute")
        return Quantize(*qparams(mod.activation_post_process), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Converts a quantized tensor to float32."""

    def forward(self, Xq: Tensor) -> Tensor:  # noqa: N803 - PyTorch's name
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """The conversion in place of a DeQuantStub."""
        del mod, use_precomputed_fake_quant  # it has no parameters
        return DeQuantize()


class MaxPool2d(nn.MaxPool2d):
    """The largest numbers of windows; of quantized tensors too."""


set_module("teletensor.ao.nn.quantized.modules", DeQuantize, Quantize)
