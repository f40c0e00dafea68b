"""LSTM of quantized tensors."""

from __future__ import annotations

from typing import Any

from ...._lazy import set_module
from ..quantizable.rnn import LSTM as ObservedLSTM


class LSTM(ObservedLSTM):
    """An LSTM of quantized tensors: the quantized form of torch.ao.nn.quantizable.LSTM."""

    _FLOAT_MODULE = ObservedLSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError: a float module is observed first, as torch.ao.nn.quantizable.LSTM."""
        raise NotImplementedError(
            f"It looks like you are trying to convert a non-observed LSTM module ({args}, {kwargs}). Please, see the examples on "
            "quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: ObservedLSTM) -> LSTM:
        """The quantized module of an observed one."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        made = cls._converted(other)
        made.__class__ = cls
        return made


set_module("teletensor.ao.nn.quantized.modules.rnn", LSTM)
