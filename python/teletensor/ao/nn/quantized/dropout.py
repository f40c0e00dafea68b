"""Dropout in a quantized model, which is not trained."""

from __future__ import annotations

from typing import Any

from .... import nn
from ...._C import Tensor
from ...._lazy import set_module


class Dropout(nn.Dropout):
    """Returns its input."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The module in place of a Dropout."""
        del use_precomputed_fake_quant
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: Any, zero_point: Any) -> Dropout:
        """The module in place of a Dropout; the result keeps the input's scale and zero point."""
        del scale, zero_point
        return cls(mod.p, mod.inplace)


set_module("teletensor.ao.nn.quantized.modules.dropout", Dropout)
