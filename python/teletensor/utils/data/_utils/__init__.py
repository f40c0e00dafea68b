"""Provides the names of torch.utils.data._utils."""

from ...._lazy import lazy_attributes

MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None)
