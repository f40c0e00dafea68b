"""torch.ao.nn.quantizable: recurrent layers and attention made of modules that can be observed and quantized."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention", "modules"]

__getattr__, __dir__ = lazy_attributes(globals(), (), {"rnn": "LSTM LSTMCell", "activation": "MultiheadAttention"})
