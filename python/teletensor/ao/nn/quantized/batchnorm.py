"""Batch norms of quantized tensors, with their averages."""

from __future__ import annotations

from typing import Any

from .... import nn, ops
from ...._C import Tensor
from ...._lazy import set_module
from ..intrinsic import fused as nni
from .utils import BufferedScale


class _BatchNorm(BufferedScale, nn.modules.batchnorm._BatchNorm):
    """The common part of the batch norms."""

    _NNI_BN_RELU_MODULE: type[nn.Module]
    _ndim: int
    _relu = False

    def __init__(self, num_features: int, eps: float = 1e-05, momentum: float = 0.1, device: Any = None, dtype: Any = None):
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self._add_scale(1.0, 0, device, dtype)

    def _get_name(self) -> str:
        return "Quantized" + type(self).__name__

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != self._ndim:
            raise ValueError(f"Input shape must be `({', '.join(('N', 'C', 'D', 'H', 'W') if self._ndim == 5 else 'NCHW')})`!")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        function = getattr(ops.quantized, f"batch_norm{self._ndim - 2}d{'_relu' if self._relu else ''}")
        return function(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, *self._numbers())

    def _take(self, bn: nn.Module, scale: Tensor, zero_point: Tensor) -> None:
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(self, name, getattr(bn, name))
        self.scale, self.zero_point = scale, zero_point

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _BatchNorm:
        """The quantized batch norm of an observed one."""
        del use_precomputed_fake_quant
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        bn = mod[0] if type(mod) is cls._NNI_BN_RELU_MODULE else mod
        made = cls(bn.num_features, bn.eps)
        made._take(bn, scale, zero_point)
        return made

    @classmethod
    def from_reference(cls, bn: nn.Module, output_scale: Tensor, output_zero_point: Tensor) -> _BatchNorm:
        """The quantized batch norm of a float one and the scale and zero point of its results."""
        made = cls(bn.num_features, bn.eps, bn.momentum, device=bn.weight.device, dtype=bn.weight.dtype)
        made._take(bn, output_scale, output_zero_point)
        return made


class BatchNorm2d(_BatchNorm):
    """A batch norm of quantized tensors (N, C, H, W)."""

    _NNI_BN_RELU_MODULE, _ndim = nni.BNReLU2d, 4


class BatchNorm3d(_BatchNorm):
    """A batch norm of quantized tensors (N, C, D, H, W)."""

    _NNI_BN_RELU_MODULE, _ndim = nni.BNReLU3d, 5


set_module("teletensor.ao.nn.quantized.modules.batchnorm", BatchNorm2d, BatchNorm3d)
