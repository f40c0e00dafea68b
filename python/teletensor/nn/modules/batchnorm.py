"""Provides the names of torch.nn.modules.batchnorm."""

from ..._lazy import defined_by
from .module import Module  # noqa: F401 - programs import these from here
from .normalization import (  # noqa: F401 - PyTorch has the private names here
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    SyncBatchNorm,
    _BatchNorm,
    _NormBase,
)  # fmt: skip

__all__ = [  # noqa: F822 - some are imported at their first use
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm",
]  # fmt: skip

# PyTorch has these names here.
__getattr__, __dir__ = defined_by(globals(), "lazy", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d")
