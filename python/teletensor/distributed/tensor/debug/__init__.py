"""torch.distributed.tensor.debug: counts of collectives, and pictures of placements."""

from ._comm_mode import CommDebugMode
from ._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]
