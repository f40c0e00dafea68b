"""Provides the names of torch.utils.dlpack."""

from .._dlpack import DLDeviceType, from_dlpack, to_dlpack  # noqa: F401 - programs may import it from here

__all__ = ["DLDeviceType", "from_dlpack"]
