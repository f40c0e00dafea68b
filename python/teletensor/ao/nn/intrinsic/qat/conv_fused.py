"""Convolutions with a batch norm or a ReLU, whose weights are rounded while they are trained."""

from __future__ import annotations

import math
from typing import Any

from ..... import _C, nn
from ....._C import Tensor
from ....._grad_mode import no_grad
from ....._lazy import set_module
from .....nn import functional as F
from .....nn import init
from .....nn.utils.fusion import fuse_conv_bn_weights
from ...qat import conv as qat_conv
from ...qat.linear import configuration
from .. import fused as nni
from .batch_norm import WithBatchNorm, per_channel

_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


class _ConvBn(WithBatchNorm, nni._FusedModule):
    """A convolution and a batch norm: a mix-in before the convolution's class."""

    _version = 2
    _FLOAT_MODULE: type[nn.Module]
    _FLOAT_CONV_MODULE: type[nn.Module]
    _FLOAT_RELU_MODULE: type[nn.Module] | None = None
    _FUSED_FLOAT_MODULE: type[nn.Module] | None = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool | None = None, padding_mode: str = "zeros", eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ):  # fmt: skip
        self._FLOAT_CONV_MODULE.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode
        )
        self.bias = nn.Parameter(_C.torch.empty(out_channels)) if bias else None
        self._enable_slow_path_for_better_numerical_stability = False
        self._add_batch_norm(_NORMS[self.weight.dim() - 2](out_channels, eps, momentum, True, True), freeze_bn, qconfig)

    def reset_bn_parameters(self) -> None:
        """Initialises the batch norm and the bias."""
        super().reset_bn_parameters()
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            init.uniform_(self.bias, -bound, bound)

    def _forward(self, input: Tensor) -> Tensor:
        if self._enable_slow_path_for_better_numerical_stability:
            return self._forward_slow(input)
        scale = self._scale()
        weight = self.weight_fake_quant(self.weight * per_channel(scale, self.weight, 0))
        return self._normalized(self._conv_forward(input, weight, None), scale)

    def _forward_slow(self, input: Tensor) -> Tensor:
        """The same without a division by the batch norm's factor, with a second convolution while statistics are averaged."""
        plain = None
        if self.bn.training:
            plain = self._conv_forward(input, self.weight, None)
            with no_grad():
                self.bn(plain if self.bias is None else plain + per_channel(self.bias, self.weight, 1))
        running = (self.bn.running_var + self.bn.eps).sqrt()
        weight = self.weight_fake_quant(self.weight * per_channel(self.bn.weight / running, self.weight, 0))
        result = self._conv_forward(input, weight, None)
        if plain is not None:
            dims = [0, *range(2, self.weight.dim())]
            mean = plain.mean(dims)
            deviation = ((plain - per_channel(mean, self.weight, 1)).square().mean(dims) + self.bn.eps).sqrt()
            result = result * per_channel(running / deviation, self.weight, 1)
        else:
            mean, deviation = self.bn.running_mean - (0 if self.bias is None else self.bias), running
        result = result + per_channel(self.bn.bias - self.bn.weight * mean / deviation, self.weight, 1)
        if self.bias is not None:  # so that the bias has a gradient of 0
            result = result + per_channel(self.bias - self.bias, self.weight, 1)
        return result

    def forward(self, input: Tensor) -> Tensor:
        result = self._forward(input)
        return result if self._FLOAT_RELU_MODULE is None else F.relu(result)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The module for training, which shares the parameters of a fused module with a QConfig."""
        del use_precomputed_fake_quant
        qconfig = configuration(mod, cls._FLOAT_MODULE, f"qat.{cls.__name__}")
        conv, bn = mod[0], mod[1]
        made = cls(
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups,
            conv.bias is not None, conv.padding_mode, bn.eps, bn.momentum, False, qconfig,
        )  # fmt: skip
        made._take(conv, bn)
        return made

    def to_float(self) -> nn.Module:
        """A convolution that includes the batch norm (and a ReLU), not rounded."""
        conv = self._FLOAT_CONV_MODULE(
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation, self.groups,
            self.bias is not None, self.padding_mode,
        )  # fmt: skip
        bn = self.bn
        conv.weight, conv.bias = fuse_conv_bn_weights(
            nn.Parameter(self.weight.detach()), None if self.bias is None else nn.Parameter(self.bias.detach()), bn.running_mean,
            bn.running_var, bn.eps, bn.weight, bn.bias,
        )  # fmt: skip
        made = conv if self._FLOAT_RELU_MODULE is None else self._FUSED_FLOAT_MODULE(conv, self._FLOAT_RELU_MODULE())
        return made.train(self.training)


class _ConvReLU(nni._FusedModule):
    """A convolution and a ReLU: a mix-in before the class of the convolution whose weight is rounded."""

    _FLOAT_RELU_MODULE = nn.ReLU

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", qconfig: Any = None,
    ):  # fmt: skip
        qat_conv._QATConvolution.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, qconfig
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


class ConvBn1d(_ConvBn, nn.Conv1d):
    """A Conv1d and a batch norm; the product of weight and factor is rounded."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = nni.ConvBn1d, nn.Conv1d, nn.BatchNorm1d


class ConvBnReLU1d(ConvBn1d):
    """A Conv1d, a batch norm and a ReLU; the product of weight and factor is rounded."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = nni.ConvBnReLU1d, nn.ReLU, nni.ConvReLU1d


class ConvReLU1d(_ConvReLU, qat_conv.Conv1d):
    """A Conv1d and a ReLU; the weight is rounded."""

    _FLOAT_MODULE, _FLOAT_BN_MODULE = nni.ConvReLU1d, None


class ConvBn2d(_ConvBn, nn.Conv2d):
    """A Conv2d and a batch norm; the product of weight and factor is rounded."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = nni.ConvBn2d, nn.Conv2d, nn.BatchNorm2d


class ConvBnReLU2d(ConvBn2d):
    """A Conv2d, a batch norm and a ReLU; the product of weight and factor is rounded."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = nni.ConvBnReLU2d, nn.ReLU, nni.ConvReLU2d


class ConvReLU2d(_ConvReLU, qat_conv.Conv2d):
    """A Conv2d and a ReLU; the weight is rounded."""

    _FLOAT_MODULE, _FLOAT_BN_MODULE = nni.ConvReLU2d, None


class ConvBn3d(_ConvBn, nn.Conv3d):
    """A Conv3d and a batch norm; the product of weight and factor is rounded."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = nni.ConvBn3d, nn.Conv3d, nn.BatchNorm3d


class ConvBnReLU3d(ConvBn3d):
    """A Conv3d, a batch norm and a ReLU; the product of weight and factor is rounded."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = nni.ConvBnReLU3d, nn.ReLU, nni.ConvReLU3d


class ConvReLU3d(_ConvReLU, qat_conv.Conv3d):
    """A Conv3d and a ReLU; the weight is rounded."""

    _FLOAT_MODULE, _FLOAT_BN_MODULE = nni.ConvReLU3d, None


def update_bn_stats(mod: nn.Module) -> None:
    """For Module.apply: batch norms use and average the statistics of batches."""
    if isinstance(mod, _ConvBn):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """For Module.apply: batch norms use their averages."""
    if isinstance(mod, _ConvBn):
        mod.freeze_bn_stats()


set_module(
    "teletensor.ao.nn.intrinsic.qat.modules.conv_fused", ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d,
    ConvBnReLU3d, ConvReLU1d, ConvReLU2d, ConvReLU3d,
)  # fmt: skip
