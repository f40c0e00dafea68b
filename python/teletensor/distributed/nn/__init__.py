"""torch.distributed.nn: collectives with gradients."""

from .functional import *  # noqa: F403
