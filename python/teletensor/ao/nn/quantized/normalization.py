"""Norms of quantized tensors."""

from __future__ import annotations

from typing import Any

from .... import nn, ops
from ...._C import Tensor
from ...._lazy import set_module
from .utils import BufferedScale, qparams


class LayerNorm(BufferedScale, nn.LayerNorm):
    """A layer norm of quantized tensors."""

    def __init__(
        self, normalized_shape: Any, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-05,
        elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._add_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.layer_norm(input, list(self.normalized_shape), self.weight, self.bias, self.eps, *self._numbers())

    def _get_name(self) -> str:
        return "QuantizedLayerNorm"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> LayerNorm:
        """The quantized norm of an observed one."""
        del use_precomputed_fake_quant
        return cls.from_reference(mod, *qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> LayerNorm:
        """The quantized norm of a float one and the scale and zero point of its results."""
        return cls(mod.normalized_shape, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.elementwise_affine)


class GroupNorm(BufferedScale, nn.GroupNorm):
    """A group norm of quantized tensors."""

    def __init__(
        self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-05,
        affine: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._add_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, *self._numbers())

    def _get_name(self) -> str:
        return "QuantizedGroupNorm"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> GroupNorm:
        """The quantized norm of an observed one."""
        del use_precomputed_fake_quant
        scale, point = qparams(mod.activation_post_process)
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, scale, point, mod.eps, mod.affine)


class _InstanceNorm(BufferedScale):
    """The common part of the instance norms: a mix-in before the class of the norm."""

    def __init__(
        self, num_features: int, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-05, momentum: float = 0.1,
        affine: bool = False, track_running_stats: bool = False, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._add_scale(scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.instance_norm(input, self.weight, self.bias, self.eps, *self._numbers())

    def _get_name(self) -> str:
        return "Quantized" + type(self).__name__

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _InstanceNorm:
        """The quantized norm of an observed one."""
        del use_precomputed_fake_quant
        return cls.from_reference(mod, *qparams(mod.activation_post_process))

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> _InstanceNorm:
        """The quantized norm of a float one and the scale and zero point of its results."""
        # PyTorch gives `affine` as the momentum, which has no effect without running statistics.
        return cls(mod.num_features, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """An instance norm of quantized tensors (N, C, L)."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """An instance norm of quantized tensors (N, C, H, W)."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """An instance norm of quantized tensors (N, C, D, H, W)."""


set_module(
    "teletensor.ao.nn.quantized.modules.normalization", GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
)
