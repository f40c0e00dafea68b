"""Passes as classes, their manager, and the partitioner; each module is imported at its first use."""

from ...._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), ("partitioner", "pass_base", "pass_manager"))
