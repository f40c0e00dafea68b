"""All modules of torch.nn, one file per family."""

from . import (
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, instancenorm, lazy, linear, loss,
    module, normalization, padding, pooling, resampling, rnn, sparse, transformer, utils,
)  # fmt: skip
from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .channelshuffle import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .lazy import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .resampling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403

__all__ = ["Module"]
for _family in (
    activation, adaptive, channelshuffle, container, conv, distance, dropout, lazy, linear, loss, normalization, padding, pooling,
    resampling, rnn, sparse, transformer,
):  # fmt: skip
    __all__ += _family.__all__
activation.MultiheadAttention = transformer.MultiheadAttention  # PyTorch defines it in this file
