"""torch.ao.nn.quantized: modules with quantized weights, which compute with integers."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "DeQuantize", "Dropout", "ELU", "Embedding", "EmbeddingBag", "FXFloatFunctional", "FloatFunctional", "GroupNorm",
    "Hardswish", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LSTM", "LayerNorm", "LeakyReLU", "Linear",
    "MultiheadAttention", "PReLU", "QFunctional", "Quantize", "ReLU6", "Sigmoid", "Softmax",
]  # fmt: skip

_NAMES = {
    "activation": "ELU Hardswish LeakyReLU MultiheadAttention PReLU ReLU6 Sigmoid Softmax",
    "batchnorm": "BatchNorm2d BatchNorm3d",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "dropout": "Dropout",
    "embedding_ops": "Embedding EmbeddingBag",
    "functional_modules": "FXFloatFunctional FloatFunctional QFunctional",
    "linear": "Linear",
    "normalization": "GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm",
    "rnn": "LSTM",
    "stubs": "DeQuantize MaxPool2d Quantize",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("dynamic", "functional", "reference"), _NAMES)
