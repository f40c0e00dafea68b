"""Provides the names of torch.nn.modules.instancenorm."""

from ..._lazy import defined_by
from .normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "_InstanceNorm"]

# PyTorch has these names here.
__getattr__ = defined_by(globals(), "_all", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d")
