"""torch.distributed._tensor.api: the former name of torch.distributed.tensor."""

from ..tensor import *  # noqa: F403
from ..tensor import __all__  # noqa: F401
