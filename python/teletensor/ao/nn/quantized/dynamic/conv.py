"""Convolutions with quantized weights, of and to float tensors."""

from __future__ import annotations

import warnings
from typing import Any

from ..... import nn
from ....._C import Tensor
from ....._lazy import set_module
from .. import conv as static


class _Dynamic(static._ConvNd):
    """The common part: a mix-in before the class of the static convolution, whose input is quantized with its own range."""

    _BATCH_NORMS: tuple[type, ...] = ()
    _SEQUENCES: tuple[type, ...] = ()

    def _init(self, *args: Any) -> None:
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical accuracy and its use is not recommended",
            stacklevel=4,
        )
        super()._init(*args)

    def _get_name(self) -> str:
        return "DynamicQuantized" + type(self).__name__

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        return self._call(self._operator + "_dynamic", self._padded(input), self._packed_params, reduce_range)


class Conv1d(_Dynamic, static.Conv1d):
    """A convolution with a qint8 weight, whose input is quantized with its own range."""

    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Dynamic, static.Conv2d):
    """A convolution with a qint8 weight, whose input is quantized with its own range."""

    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Dynamic, static.Conv3d):
    """A convolution with a qint8 weight, whose input is quantized with its own range."""

    _FLOAT_MODULE = nn.Conv3d


class ConvTranspose1d(_Dynamic, static.ConvTranspose1d):
    """A transposed convolution with a qint8 weight, whose input is quantized with its own range."""

    _FLOAT_MODULE = nn.ConvTranspose1d


class ConvTranspose2d(_Dynamic, static.ConvTranspose2d):
    """A transposed convolution with a qint8 weight, whose input is quantized with its own range."""

    _FLOAT_MODULE = nn.ConvTranspose2d


class ConvTranspose3d(_Dynamic, static.ConvTranspose3d):
    """A transposed convolution with a qint8 weight, whose input is quantized with its own range."""

    _FLOAT_MODULE = nn.ConvTranspose3d


set_module(
    "teletensor.ao.nn.quantized.dynamic.modules.conv", Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
