"""Provides the names of torch.nn.modules.batchnorm."""

from ..._lazy import defined_by
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm, _BatchNorm, _NormBase

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "_BatchNorm", "_NormBase"]

# PyTorch has these names here.
__getattr__ = defined_by(globals(), "_all", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d")
