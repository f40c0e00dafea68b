"""torch._higher_order_ops: functions that call functions of tensors. Of PyTorch's, those that other libraries import."""

from __future__ import annotations

from .associative_scan import associative_scan
from .control import cond, while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
