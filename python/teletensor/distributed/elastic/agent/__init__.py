"""torch.distributed.elastic.agent: the agent of a node."""

from . import server
