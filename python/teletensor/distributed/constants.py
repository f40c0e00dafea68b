"""torch.distributed.constants: the timeouts of process groups."""

from ._world import default_pg_timeout

__all__ = ["default_pg_timeout"]
