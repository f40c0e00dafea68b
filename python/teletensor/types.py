"""torch.types: types of arguments, for annotations."""

from __future__ import annotations

from typing import Union

from . import _C

__all__ = ["Device", "Number"]

Number = Union[int, float, bool]
Device = Union[_C.device, str, int, None]
