"""torch.ao.nn.intrinsic.qat: fused modules whose weights are rounded while they are trained."""

from __future__ import annotations

from ....._lazy import lazy_attributes

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "LinearBn1d", "LinearReLU", "freeze_bn_stats", "modules", "update_bn_stats",
]  # fmt: skip

_NAMES = {
    "conv_fused": (
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d freeze_bn_stats update_bn_stats"
    ),
    "linear_fused": "LinearBn1d LinearReLU",
}
__getattr__, __dir__ = lazy_attributes(globals(), (), _NAMES)
