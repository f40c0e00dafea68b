"""All modules of torch.nn, one file per family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._lazy import lazy_module

if TYPE_CHECKING:
    from ._all import *  # noqa: F403 - for static type checkers

__getattr__, __dir__ = lazy_module(globals(), "_all")
