"""Convolutions with quantized weights, followed by a sum or a ReLU."""

from __future__ import annotations

from ..... import nn
from ....._C import Tensor
from ....._lazy import set_module
from ...quantized import conv as nnq
from .. import fused as nni

_WITH_NORM = (nni.ConvBnReLU1d, nni.ConvBnReLU2d, nni.ConvBnReLU3d)


class _Fused(nnq._Convolution):
    """A convolution in a fused module, whose first module is the convolution."""

    @classmethod
    def from_reference(cls, ref_qconv: nn.Module, output_scale: float, output_zero_point: int) -> nnq._ConvNd:
        """The module of a fused reference module."""
        if type(ref_qconv) in _WITH_NORM:
            raise AssertionError("BatchNorm should be fused into the convolution before converting to reference module")
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvReLU1d(_Fused, nnq.Conv1d):
    """A Conv1d and a ReLU of quantized tensors."""

    _FLOAT_MODULE, _operator = nni.ConvReLU1d, "conv{n}d_relu"


class ConvReLU2d(_Fused, nnq.Conv2d):
    """A Conv2d and a ReLU of quantized tensors."""

    _FLOAT_MODULE, _operator = nni.ConvReLU2d, "conv{n}d_relu"


class ConvReLU3d(_Fused, nnq.Conv3d):
    """A Conv3d and a ReLU of quantized tensors."""

    _FLOAT_MODULE, _operator = nni.ConvReLU3d, "conv{n}d_relu"


class ConvAdd2d(_Fused, nnq.Conv2d):
    """A Conv2d and the sum with a second quantized tensor."""

    _FLOAT_MODULE, _operator = nni.ConvAdd2d, "conv{n}d_add"

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:
        return self._call(self._operator, self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)


class ConvAddReLU2d(ConvAdd2d):
    """A Conv2d, the sum with a second quantized tensor, and a ReLU."""

    _FLOAT_MODULE, _operator = nni.ConvAddReLU2d, "conv{n}d_add_relu"


set_module("teletensor.ao.nn.intrinsic.quantized.modules.conv_add", ConvAdd2d, ConvAddReLU2d)
set_module("teletensor.ao.nn.intrinsic.quantized.modules.conv_relu", ConvReLU1d, ConvReLU2d, ConvReLU3d)
