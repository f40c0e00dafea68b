"""torch.ao.nn.intrinsic.quantized: fused modules with quantized weights."""

from __future__ import annotations

from ....._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip

_NAMES = {
    "batch_norm": "BNReLU2d BNReLU3d",
    "conv": "ConvAdd2d ConvAddReLU2d ConvReLU1d ConvReLU2d ConvReLU3d",
    "linear": "LinearLeakyReLU LinearReLU LinearTanh",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("dynamic",), _NAMES)
