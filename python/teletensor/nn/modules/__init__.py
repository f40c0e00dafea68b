"""All modules of torch.nn, one file per family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._lazy import lazy_attributes
from .._names import CLASSES

if TYPE_CHECKING:  # for static type checkers
    from .activation import *  # noqa: F403
    from .adaptive import *  # noqa: F403
    from .channelshuffle import *  # noqa: F403
    from .container import *  # noqa: F403
    from .conv import *  # noqa: F403
    from .distance import *  # noqa: F403
    from .dropout import *  # noqa: F403
    from .flatten import *  # noqa: F403
    from .fold import *  # noqa: F403
    from .lazy import *  # noqa: F403
    from .linear import *  # noqa: F403
    from .loss import *  # noqa: F403
    from .normalization import *  # noqa: F403
    from .padding import *  # noqa: F403
    from .pixelshuffle import *  # noqa: F403
    from .pooling import *  # noqa: F403
    from .rnn import *  # noqa: F403
    from .sparse import *  # noqa: F403
    from .transformer import *  # noqa: F403
    from .upsampling import *  # noqa: F403
    from .module import Module

__all__ = sorted(name for names in CLASSES.values() for name in names.split())
__getattr__, __dir__ = lazy_attributes(globals(), None, CLASSES)
