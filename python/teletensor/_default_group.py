"""The default process group, for layers below torch.distributed, which sets `find`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _none() -> None:
    """There is no group unless torch.distributed was imported."""


find: Callable[[], Any] = _none  # returns the default ProcessGroup, or None
