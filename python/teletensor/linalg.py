"""torch.linalg: decompositions, solutions and norms of matrices, batched over leading dimensions.

What a matrix has no solution or decomposition for raises LinAlgError, where its value is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _C
from ._C import LinAlgError

globals().update({name: fn for name, fn in vars(_C.linalg).items() if not name.startswith("_")})
if _TYPE_CHECKING:
    from ._C.linalg import *  # noqa: F403 - the same, for who does not run it
