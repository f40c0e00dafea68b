"""Activations of quantized tensors."""

from __future__ import annotations

import warnings
from typing import Any

from .... import _C, nn, ops
from .... import _quantized_names as q
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from ...._quantized.functions import _choose_qparams_per_tensor
from ....nn import functional as F
from ..quantizable.activation import MultiheadAttention as ObservedAttention
from .utils import BufferedScale, qparams


class ReLU6(nn.ReLU):
    """clamp(x, 0, 6), with the scale and zero point of x."""

    def __init__(self, inplace: bool = False):
        super().__init__(inplace)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The module in place of a ReLU6."""
        del use_precomputed_fake_quant
        return ReLU6(mod.inplace)


class _FromFloat:
    """Creation from an observed module by way of from_reference."""

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized module of an observed one."""
        del use_precomputed_fake_quant
        return cls.from_reference(mod, *qparams(mod.activation_post_process))


class Hardswish(_FromFloat, BufferedScale, nn.Hardswish):
    """x * clamp(x + 3, 0, 6) / 6."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None):
        super().__init__()
        self._add_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.hardswish(input, *self._numbers())

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Hardswish:
        """The module in place of a Hardswish."""
        del mod  # it has no parameters
        return cls(float(scale), int(zero_point))


class ELU(_FromFloat, nn.ELU):
    """x, or alpha * (exp(x) - 1) if x is negative."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> ELU:
        """The module in place of an ELU."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(_FromFloat, BufferedScale, nn.LeakyReLU):
    """x, or negative_slope * x if x is negative."""

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 0.01, inplace: bool = False, device: Any = None, dtype: Any = None
    ):
        super().__init__(negative_slope, inplace)
        self._add_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.leaky_relu(input, self.negative_slope, self.inplace, *self._numbers())

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> LeakyReLU:
        """The module in place of a LeakyReLU."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(_FromFloat, nn.Sigmoid):
    """1 / (1 + exp(-x))."""

    def __init__(self, output_scale: float, output_zero_point: int):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Sigmoid:
        """The module in place of a Sigmoid."""
        del mod  # it has no parameters
        return cls(float(scale), int(zero_point))


class Softmax(_FromFloat, nn.Softmax):
    """exp(x) divided by its sum over a dimension."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0):
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        dim = F._get_softmax_dim("softmax", input.dim(), 3) if self.dim is None else self.dim
        return ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> Softmax:
        """The module in place of a Softmax."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(_FromFloat, nn.Module):
    """x, or weight * x if x is negative, with a quantized weight."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1):
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(create.quantize_per_tensor(_C.torch.randn(num_parameters), 1.0, 0, q.quint8))

    def set_weight(self, w: Tensor) -> None:
        """Sets the quantized weight."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> PReLU:
        """The module in place of a PReLU with a QConfig."""
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        observer, weight = mod.qconfig.weight(), mod.weight.detach().float()
        observer(weight)
        if observer.dtype != q.quint8:
            warnings.warn(f"PReLU's weight observer should have dtype quint8 but got {observer.dtype}", stacklevel=2)
        made.set_weight(create.quantize_per_tensor(weight, *qparams(observer), q.quint8))
        return made


class MultiheadAttention(ObservedAttention):
    """Attention of quantized tensors: the quantized form of torch.ao.nn.quantizable.MultiheadAttention."""

    _FLOAT_MODULE = ObservedAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: nn.Module) -> MultiheadAttention:
        """Raises NotImplementedError: a float module is observed first, as torch.ao.nn.quantizable.MultiheadAttention."""
        raise NotImplementedError(
            f"It looks like you are trying to convert a non-observed MHA module ({type(other).__name__}). Please, see the examples on "
            "quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: ObservedAttention) -> MultiheadAttention:
        """The quantized module of an observed one."""
        made = cls._converted(other)
        made.__class__ = cls
        for name in ("bias_k", "bias_v"):
            value = getattr(made, name)
            if value is not None:
                del made._parameters[name]
                scale, point = _choose_qparams_per_tensor(value.detach(), False)
                setattr(made, name, create.quantize_per_tensor(value.detach(), scale, point, q.quint8))
        del made.in_proj_weight, made.in_proj_bias
        return made


set_module(
    "teletensor.ao.nn.quantized.modules.activation", ELU, Hardswish, LeakyReLU, MultiheadAttention, ReLU6, Sigmoid, Softmax, PReLU
)
