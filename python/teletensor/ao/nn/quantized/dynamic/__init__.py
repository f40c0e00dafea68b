"""torch.ao.nn.quantized.dynamic: modules with quantized weights, of and to float tensors, each quantized with its own range."""

from __future__ import annotations

from ....._lazy import lazy_attributes

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRU", "GRUCell", "LSTM",
    "LSTMCell", "Linear", "RNNCell", "modules",
]  # fmt: skip

_NAMES = {
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "linear": "Linear",
    "cells": "GRUCell LSTMCell RNNCell RNNCellBase",
    "rnn": "GRU LSTM PackedParameter RNNBase",
}
__getattr__, __dir__ = lazy_attributes(globals(), (), _NAMES)
