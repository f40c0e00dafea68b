"""Layout in memory of the weights of convolutions."""

from __future__ import annotations

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, kinds: tuple, memory_format) -> Module:
    for part in module.modules():
        if isinstance(part, kinds):
            weight = part.weight.detach().clone(memory_format=memory_format)
            part.weight.data = weight.resize_(weight.shape, memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format) -> Module:
    """Stores the weights of 2-dimensional convolutions in a memory format; returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format) -> Module:
    """Stores the weights of 3-dimensional convolutions in a memory format; returns the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
