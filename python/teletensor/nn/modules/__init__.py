"""The modules, a file a family."""

from . import activation, container, conv, dropout, linear, loss, module, normalization, padding, pooling, resampling, sparse
from .activation import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .dropout import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .resampling import *  # noqa: F403
from .sparse import *  # noqa: F403

__all__ = ["Module"]
for _family in (activation, container, conv, dropout, linear, loss, normalization, padding, pooling, resampling, sparse):
    __all__ += _family.__all__
