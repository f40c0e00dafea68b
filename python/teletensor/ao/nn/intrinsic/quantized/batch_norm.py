"""Batch norms of quantized tensors, followed by a ReLU."""

from __future__ import annotations

from ..... import nn
from ....._C import Tensor
from ....._lazy import set_module
from ...quantized.batchnorm import BatchNorm2d, BatchNorm3d, _BatchNorm
from .. import fused as nni


class _BNReLU(_BatchNorm):
    """The common part."""

    _relu = True

    def _get_name(self) -> str:
        return "Quantized" + type(self).__name__

    @classmethod
    def from_reference(cls, bn_relu: nn.Module, output_scale: Tensor, output_zero_point: Tensor) -> _BatchNorm:
        """The quantized module of a float one and the scale and zero point of its results."""
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)


class BNReLU2d(_BNReLU, BatchNorm2d):
    """A batch norm and a ReLU of quantized tensors (N, C, H, W)."""

    _FLOAT_MODULE = nni.BNReLU2d


class BNReLU3d(_BNReLU, BatchNorm3d):
    """A batch norm and a ReLU of quantized tensors (N, C, D, H, W)."""

    _FLOAT_MODULE = nni.BNReLU3d


set_module("teletensor.ao.nn.intrinsic.quantized.modules.bn_relu", BNReLU2d, BNReLU3d)
