"""torch.ao.quantization.fake_quantize: the fake quantizations, and the default ones."""

from . import _defaults
from ._defaults import *  # noqa: F403
from ._fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FixedQParamsFakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
)

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize", "disable_fake_quant",
    "disable_observer", "enable_fake_quant", "enable_observer", *(name for name in _defaults.__all__ if "fake_quant" in name),
]  # fmt: skip
