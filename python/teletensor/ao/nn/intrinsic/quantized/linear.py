"""Linear layers with quantized weights, followed by an activation."""

from __future__ import annotations

from typing import Any

from ..... import _quantized_names as q
from ..... import nn, ops
from ....._C import Tensor
from ....._lazy import set_module
from ...quantized.linear import Linear
from ...quantized.utils import qparams
from .. import fused as nni


class LinearReLU(Linear):
    """A linear layer and a ReLU of quantized tensors."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = q.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.quantized.linear_relu(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_linear_relu: nn.Module, output_scale: float, output_zero_point: int) -> Linear:
        """The module of a fused reference module."""
        return super().from_reference(ref_linear_relu[0], output_scale, output_zero_point)


class _WithActivation(Linear):
    """A linear layer and an activation: what from_float and from_reference share."""

    @classmethod
    def _arguments(cls, activation: nn.Module) -> tuple:
        """The constructor's arguments that come from the activation."""
        del activation
        return ()

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized module of an observed one."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Input float module should be {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        made = cls._made(mod[0], mod[0].qconfig.weight(), *cls._arguments(mod[1]), observe=not use_precomputed_fake_quant)
        made.scale, made.zero_point = qparams(mod.activation_post_process)
        return made

    @classmethod
    def from_reference(cls, ref_mod: nn.Module, output_scale: float, output_zero_point: int) -> Linear:
        """The module of a fused reference module."""
        linear = ref_mod[0]
        made = cls(linear.in_features, linear.out_features, *cls._arguments(ref_mod[1]))
        made.set_weight_bias(linear.get_quantized_weight(), linear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class LinearLeakyReLU(_WithActivation):
    """A linear layer and a LeakyReLU of quantized tensors."""

    _FLOAT_MODULE = nni.LinearLeakyReLU

    def __init__(self, in_features: int, out_features: int, negative_slope: float, bias: bool = True, dtype: Any = q.qint8):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    @classmethod
    def _arguments(cls, activation: nn.Module) -> tuple:
        return (activation.negative_slope,)

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        return ops.quantized.linear_leaky_relu(x, packed, self.scale, self.zero_point, self.negative_slope)

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"


class LinearTanh(_WithActivation):
    """A linear layer and a Tanh of quantized tensors."""

    _FLOAT_MODULE = nni.LinearTanh

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = q.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.quantized.linear_tanh(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"


set_module("teletensor.ao.nn.intrinsic.quantized.modules.linear_relu", LinearReLU, LinearLeakyReLU, LinearTanh)
