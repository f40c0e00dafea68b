"""torchao.core.config: the base class of configurations."""

from __future__ import annotations

import abc

__all__ = ["AOBaseConfig"]


class AOBaseConfig(abc.ABC):  # noqa: B024 - torchao's class has no methods either
    """A description of how quantize_() changes modules."""
