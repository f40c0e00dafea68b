"""torch.ao.nn.intrinsic: sequences of modules that quantization treats as one."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d",
    "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU", "LinearReLU", "LinearTanh",
]  # fmt: skip

_NAMES = {
    "fused": (
        "BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d "
        "ConvReLU3d LinearBn1d LinearLeakyReLU LinearReLU LinearTanh _FusedModule"
    )
}
__getattr__, __dir__ = lazy_attributes(globals(), ("qat", "quantized"), _NAMES)
