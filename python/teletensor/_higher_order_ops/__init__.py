"""torch._higher_order_ops: functions that call functions of tensors. Of PyTorch's, those that other libraries import."""

from __future__ import annotations

from .associative_scan import associative_scan
from .control import cond, map, scan, while_loop  # noqa: A004 - PyTorch's name

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
