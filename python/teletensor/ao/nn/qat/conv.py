"""Convolutions whose weights are rounded while they are trained."""

from __future__ import annotations

from typing import Any

from .... import nn
from ...._C import Tensor
from ...._lazy import set_module
from ..intrinsic.fused import _FusedModule
from .linear import configuration


class _QATConvolution(nn.Module):
    """The common part of the convolutions: a mix-in before the class of the convolution."""

    _FLOAT_MODULE: type[nn.Module]
    _FLOAT_CONV_MODULE: type[nn.Module]
    _FLOAT_RELU_MODULE: type[nn.Module] | None = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", qconfig: Any = None, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device=device, dtype=dtype
        )
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The module for training, which shares the parameters of a convolution with a QConfig."""
        del use_precomputed_fake_quant
        qconfig = configuration(mod, cls._FLOAT_MODULE, f"qat.{cls.__name__}")
        if isinstance(mod, _FusedModule):
            mod = mod[0]
            qconfig = mod.qconfig
        made = cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, stride=mod.stride, padding=mod.padding, dilation=mod.dilation,
            groups=mod.groups, bias=mod.bias is not None, padding_mode=mod.padding_mode, qconfig=qconfig,
        )  # fmt: skip
        made.weight, made.bias = mod.weight, mod.bias
        return made

    def to_float(self) -> nn.Module:
        """A convolution (and a ReLU) with copies of the parameters, not rounded."""
        conv = self._FLOAT_CONV_MODULE(
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation, self.groups,
            self.bias is not None, self.padding_mode,
        )  # fmt: skip
        conv.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            conv.bias = nn.Parameter(self.bias.detach())
        if self._FLOAT_RELU_MODULE is None:
            return conv
        return self._FLOAT_MODULE(conv, self._FLOAT_RELU_MODULE()).train(self.training)


class Conv1d(_QATConvolution, nn.Conv1d):
    """A Conv1d whose weight a FakeQuantize rounds."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_QATConvolution, nn.Conv2d):
    """A Conv2d whose weight a FakeQuantize rounds."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_QATConvolution, nn.Conv3d):
    """A Conv3d whose weight a FakeQuantize rounds."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv3d


set_module("teletensor.ao.nn.qat.modules.conv", Conv1d, Conv2d, Conv3d)
