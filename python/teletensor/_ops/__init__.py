"""PyTorch functions that are composed of several operators, one module per subject. Also provides names of torch._ops."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "HigherOrderOperator": "._higher_order_ops._operator", "OpOverload": "._library.operators", "OpOverloadPacket": "._library.operators",
    "ops": ".ops",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'teletensor._ops' has no attribute {name!r}")
    module = importlib.import_module(_NAMES[name], __package__.rpartition(".")[0])
    return module if name == "ops" else getattr(module, name)
