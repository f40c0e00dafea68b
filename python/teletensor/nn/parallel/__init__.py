"""Modules that train on several devices or engines."""

from .distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
