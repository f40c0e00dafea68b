"""Linear layers with a batch norm or a ReLU, whose weights are rounded while they are trained."""

from __future__ import annotations

from typing import Any

from ..... import _C, nn
from ....._C import Tensor
from ....._lazy import set_module
from .....nn import functional as F
from .....nn.utils.fusion import fuse_linear_bn_weights
from ...qat.linear import Linear, configuration
from .. import fused as nni
from .batch_norm import WithBatchNorm, per_channel


class LinearBn1d(WithBatchNorm, nni._FusedModule, nn.Linear):
    """A linear layer and a batch norm; the product of weight and factor is rounded."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ):  # fmt: skip
        nn.Linear.__init__(self, in_features, out_features, bias)
        if bias:
            self.bias = nn.Parameter(_C.torch.empty(out_features))
        self._add_batch_norm(nn.BatchNorm1d(out_features, eps, momentum, True, True), freeze_bn, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        scale = self._scale()
        weight = self.weight_fake_quant(self.weight * per_channel(scale, self.weight, 0))
        return self._normalized(F.linear(input, weight), scale)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> LinearBn1d:
        """The module for training, which shares the parameters of a fused module with a QConfig."""
        del use_precomputed_fake_quant
        qconfig = configuration(mod, nni.LinearBn1d, f"qat.{cls.__name__}")
        linear, bn = mod[0], mod[1]
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, bn.eps, bn.momentum, False, qconfig)
        made._take(linear, bn)
        return made

    def to_float(self) -> nn.Linear:
        """A linear layer that includes the batch norm, not rounded."""
        linear, bn = nn.Linear(self.in_features, self.out_features), self.bn
        linear.weight, linear.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return linear


class LinearReLU(Linear, nni._FusedModule):
    """A linear layer and a ReLU; the weight is rounded."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None):
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self) -> nni.LinearReLU:
        """A linear layer and a ReLU with copies of the parameters, not rounded."""
        return nni.LinearReLU(super().to_float(), nn.ReLU())


set_module("teletensor.ao.nn.intrinsic.qat.modules.linear_fused", LinearBn1d)
set_module("teletensor.ao.nn.intrinsic.qat.modules.linear_relu", LinearReLU)
