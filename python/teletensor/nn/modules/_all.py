"""The classes of all families of modules."""

from __future__ import annotations

from . import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)  # fmt: skip
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
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

__all__ = ["Module"]
for _family in (
    activation, adaptive, channelshuffle, container, conv, distance, dropout, flatten, fold, lazy, linear, loss, normalization,
    padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling,
):  # fmt: skip
    __all__ += _family.__all__

# PyTorch defines these classes in other files.
activation.MultiheadAttention = transformer.MultiheadAttention
for _name in lazy.__all__:
    _owner = {"LazyBatchNorm": batchnorm, "LazyInstanceNorm": instancenorm, "LazyLinear": linear}.get(_name.rstrip("123d"), conv)
    setattr(_owner, _name, getattr(lazy, _name))
