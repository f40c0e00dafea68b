"""torch.special: the functions of mathematical physics and statistics, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _C

globals().update({name: fn for name, fn in vars(_C.special).items() if not name.startswith("_")})
if _TYPE_CHECKING:
    from ._C.special import *  # noqa: F403 - the same, for who does not run it
