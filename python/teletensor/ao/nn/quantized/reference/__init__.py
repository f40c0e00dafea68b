"""torch.ao.nn.quantized.reference: modules that compute with dequantized weights, the meaning of quantized modules."""

from __future__ import annotations

from ....._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Embedding", "EmbeddingBag", "GRU",
    "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell",
]  # fmt: skip

_NAMES = {
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "linear": "Linear",
    "rnn": "GRU GRUCell LSTM LSTMCell RNNCell",
    "sparse": "Embedding EmbeddingBag",
    "utils": "ReferenceQuantizedModule",
}
__getattr__, __dir__ = lazy_attributes(globals(), (), _NAMES)
