"""Provides the names of torch.nn.modules.instancenorm."""

from ..._lazy import defined_by
from .normalization import (  # noqa: F401 - PyTorch has the private names here
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _InstanceNorm,
)  # fmt: skip

__all__ = [  # noqa: F822 - some are imported at their first use
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip

# PyTorch has these names here.
__getattr__, __dir__ = defined_by(globals(), "lazy", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d")
