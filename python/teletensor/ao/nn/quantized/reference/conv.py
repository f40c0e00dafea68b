"""Convolutions that compute with the numbers of their quantized weights."""

from __future__ import annotations

from typing import Any

from ..... import nn
from ....._C import Tensor
from ....._lazy import set_module
from .utils import ReferenceQuantizedModule


class _Convolution(ReferenceQuantizedModule):
    """A convolution: a mix-in before its class."""

    _IS_REFERENCE = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device=device, dtype=dtype
        )
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_conv: nn.Module, weight_qparams: dict[str, Any]) -> nn.Module:
        """The reference convolution of a float one and its weight's scale and zero point."""
        m = float_conv
        made = cls(
            m.in_channels, m.out_channels, m.kernel_size, m.stride, m.padding, m.dilation, m.groups, m.bias is not None, m.padding_mode,
            device=m.weight.device, dtype=m.weight.dtype, weight_qparams=weight_qparams,
        )  # fmt: skip
        made._take(m)
        return made


class _TransposedConvolution(ReferenceQuantizedModule):
    """A transposed convolution: a mix-in before its class."""

    _IS_REFERENCE = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode,
            device=device, dtype=dtype,
        )  # fmt: skip
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        if output_size is not None:
            raise NotImplementedError(f"[{self._get_name()}] expected output_size=None, got {output_size}")
        return getattr(nn.functional, self.function)(
            x, self.get_weight(), self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )

    @classmethod
    def from_float(cls, float_conv: nn.Module, weight_qparams: dict[str, Any]) -> nn.Module:
        """The reference convolution of a float one and its weight's scale and zero point."""
        m = float_conv
        made = cls(
            m.in_channels, m.out_channels, m.kernel_size, m.stride, m.padding, m.output_padding, m.groups, m.bias is not None, m.dilation,
            m.padding_mode, device=m.weight.device, dtype=m.weight.dtype, weight_qparams=weight_qparams,
        )  # fmt: skip
        made._take(m)
        return made


class Conv1d(_Convolution, nn.Conv1d):
    """A Conv1d whose weight is rounded in each call."""


class Conv2d(_Convolution, nn.Conv2d):
    """A Conv2d whose weight is rounded in each call."""


class Conv3d(_Convolution, nn.Conv3d):
    """A Conv3d whose weight is rounded in each call."""


class ConvTranspose1d(_TransposedConvolution, nn.ConvTranspose1d):
    """A ConvTranspose1d whose weight is rounded in each call."""


class ConvTranspose2d(_TransposedConvolution, nn.ConvTranspose2d):
    """A ConvTranspose2d whose weight is rounded in each call."""


class ConvTranspose3d(_TransposedConvolution, nn.ConvTranspose3d):
    """A ConvTranspose3d whose weight is rounded in each call."""


set_module(
    "teletensor.ao.nn.quantized.reference.modules.conv", Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
