"""Provides the names of torch.utils.data._utils."""

from . import collate, fetch, pin_memory, worker

MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]
