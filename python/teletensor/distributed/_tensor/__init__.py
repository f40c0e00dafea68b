"""torch.distributed._tensor: the former name of torch.distributed.tensor."""

from ..tensor import *  # noqa: F403
from ..tensor import DeviceMesh, __all__, init_device_mesh  # noqa: F401
