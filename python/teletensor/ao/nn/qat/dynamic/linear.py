"""Linear for training with dynamic quantization."""

from __future__ import annotations

from typing import Any

from ....._lazy import set_module
from ....quantization.qconfig import _activation_is_memoryless
from ..linear import Linear as StaticLinear


class Linear(StaticLinear):
    """A linear layer whose weight is rounded. Its configuration's observer of activations must forget earlier tensors."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None, dtype: Any = None
    ):
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        if not _activation_is_memoryless(qconfig):
            raise ValueError(
                "Dynamic QAT requires a memoryless observer.This means a MovingAverage observer with averaging constant equal to 1"
            )


set_module("teletensor.ao.nn.qat.dynamic.modules.linear", Linear)
