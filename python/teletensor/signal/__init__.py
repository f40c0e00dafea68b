"""torch.signal: window functions."""

from .._lazy import lazy_attributes

__all__ = ["windows"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None)
