"""torch.distributed.tensor.device_mesh: another name of torch.distributed.device_mesh."""

from ..device_mesh import *  # noqa: F403
from ..device_mesh import __all__  # noqa: F401
