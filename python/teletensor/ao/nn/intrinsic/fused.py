"""Modules that hold a sequence of modules, which quantization replaces by one module."""

from __future__ import annotations

from typing import Any

from ...._lazy import set_module
from ....nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    LeakyReLU,
    Linear,
    Module,
    ReLU,
    Sequential,
    Tanh,
)
from ....nn.utils.parametrize import type_before_parametrizations


class _FusedModule(Sequential):
    """A sequence of modules of certain classes."""

    def _checked(self, *pairs: tuple[Module, type]) -> list[Module]:
        """The modules. Raises AssertionError for a module of another class."""
        found = [type_before_parametrizations(module) for module, _ in pairs]
        if found != [expected for _, expected in pairs]:
            wanted = ", ".join(expected.__name__ for _, expected in pairs)
            raise AssertionError(f"Incorrect types for input modules: expected {wanted}, got {', '.join(t.__name__ for t in found)}")
        return [module for module, _ in pairs]


class ConvReLU1d(_FusedModule):
    """A convolution and a ReLU."""

    def __init__(self, conv: Module, relu: Module):
        super().__init__(*self._checked((conv, Conv1d), (relu, ReLU)))


class ConvBn1d(_FusedModule):
    """A convolution and a batch norm."""

    def __init__(self, conv: Module, bn: Module):
        super().__init__(*self._checked((conv, Conv1d), (bn, BatchNorm1d)))


class ConvBnReLU1d(_FusedModule):
    """A convolution, a batch norm and a ReLU."""

    def __init__(self, conv: Module, bn: Module, relu: Module):
        super().__init__(*self._checked((conv, Conv1d), (bn, BatchNorm1d), (relu, ReLU)))


class ConvReLU2d(_FusedModule):
    """A convolution and a ReLU."""

    def __init__(self, conv: Module, relu: Module):
        super().__init__(*self._checked((conv, Conv2d), (relu, ReLU)))


class ConvBn2d(_FusedModule):
    """A convolution and a batch norm."""

    def __init__(self, conv: Module, bn: Module):
        super().__init__(*self._checked((conv, Conv2d), (bn, BatchNorm2d)))


class ConvBnReLU2d(_FusedModule):
    """A convolution, a batch norm and a ReLU."""

    def __init__(self, conv: Module, bn: Module, relu: Module):
        super().__init__(*self._checked((conv, Conv2d), (bn, BatchNorm2d), (relu, ReLU)))


class ConvReLU3d(_FusedModule):
    """A convolution and a ReLU."""

    def __init__(self, conv: Module, relu: Module):
        super().__init__(*self._checked((conv, Conv3d), (relu, ReLU)))


class ConvBn3d(_FusedModule):
    """A convolution and a batch norm."""

    def __init__(self, conv: Module, bn: Module):
        super().__init__(*self._checked((conv, Conv3d), (bn, BatchNorm3d)))


class ConvBnReLU3d(_FusedModule):
    """A convolution, a batch norm and a ReLU."""

    def __init__(self, conv: Module, bn: Module, relu: Module):
        super().__init__(*self._checked((conv, Conv3d), (bn, BatchNorm3d), (relu, ReLU)))


class BNReLU2d(_FusedModule):
    """A batch norm and a ReLU."""

    def __init__(self, batch_norm: Module, relu: Module):
        super().__init__(*self._checked((batch_norm, BatchNorm2d), (relu, ReLU)))


class BNReLU3d(_FusedModule):
    """A batch norm and a ReLU."""

    def __init__(self, batch_norm: Module, relu: Module):
        super().__init__(*self._checked((batch_norm, BatchNorm3d), (relu, ReLU)))


class LinearReLU(_FusedModule):
    """A linear layer and a ReLU."""

    def __init__(self, linear: Module, relu: Module):
        super().__init__(*self._checked((linear, Linear), (relu, ReLU)))


class LinearBn1d(_FusedModule):
    """A linear layer and a batch norm."""

    def __init__(self, linear: Module, bn: Module):
        super().__init__(*self._checked((linear, Linear), (bn, BatchNorm1d)))


class LinearLeakyReLU(_FusedModule):
    """A linear layer and a LeakyReLU."""

    def __init__(self, linear: Module, leaky_relu: Module):
        super().__init__(*self._checked((linear, Linear), (leaky_relu, LeakyReLU)))


class LinearTanh(_FusedModule):
    """A linear layer and a Tanh."""

    def __init__(self, linear: Module, tanh: Module):
        super().__init__(*self._checked((linear, Linear), (tanh, Tanh)))


class ConvAdd2d(_FusedModule):
    """A convolution and the sum of its result and a second input, by the function ``add``."""

    def __init__(self, conv: Module, add: Any):
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Any, x2: Any) -> Any:
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution, the sum of its result and a second input, and a ReLU."""

    def __init__(self, conv: Module, add: Any, relu: Any):
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Any, x2: Any) -> Any:
        return self.relu(self.add(self[0](x1), x2))


set_module(
    "teletensor.ao.nn.intrinsic.modules.fused", ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d,
    ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU, BNReLU2d, BNReLU3d, LinearBn1d, LinearLeakyReLU, LinearTanh, ConvAdd2d,
    ConvAddReLU2d,
)  # fmt: skip
