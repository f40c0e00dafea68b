"""torch._higher_order_ops: functions that call functions of tensors. Of PyTorch's, those that other libraries import."""

from __future__ import annotations

import sys

from .._lazy import keep_functions, lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "associative_scan": "associative_scan",
    "control": "cond map scan while_loop",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("control",), _NAMES)
keep_functions(sys.modules[__name__], "associative_scan")

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
