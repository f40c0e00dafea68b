"""torchao.quantization.qat.two_step_quantizer: the base class of quantizers with prepare() and convert()."""

from __future__ import annotations

import warnings
from typing import Any

from ....nn import Module

__all__ = ["TwoStepQuantizer"]


class TwoStepQuantizer:
    """Prepares a model for training with rounded weights, and converts the trained model. Both change the model."""

    def prepare(self, model: Module, *args: Any, **kwargs: Any) -> Module:
        """Inserts fake quantization."""
        raise NotImplementedError

    def convert(self, model: Module, *args: Any, **kwargs: Any) -> Module:
        """Quantizes the weights."""
        raise NotImplementedError


def warn_of_older_name(value: Any) -> None:
    """Warns that torchao is going to remove a class."""
    warnings.warn(
        f"'{type(value).__name__}' is deprecated and will be removed in a future release of torchao: use QATConfig(base_config, "
        'step="prepare") and QATConfig(base_config, step="convert") with quantize_(), or QATConfig(activation_config=..., '
        "weight_config=...)",
        stacklevel=4,
    )
