"""Debug levels of torch.distributed. Collectives are always checked on all ranks, so the level changes no behaviour."""

from __future__ import annotations

import enum
import os

from .._lazy import set_module


class DebugLevel(enum.Enum):
    OFF = 0
    INFO = 1
    DETAIL = 2


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """Returns the debug level."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Sets the debug level."""
    global _level
    if not isinstance(level, DebugLevel):
        raise TypeError(f"expected a DebugLevel, got {level!r}")
    _level = level


def set_debug_level_from_env() -> None:
    """Sets the debug level to ``TORCH_DISTRIBUTED_DEBUG``: OFF (the default), INFO or DETAIL."""
    value = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper() or "OFF"
    if value not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[value])


set_debug_level_from_env()

set_module("teletensor.distributed.distributed_c10d", DebugLevel)
