"""torch._dynamo.utils: whether graphs can be compiled for a device."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Always False: graphs are not compiled."""
    return False
