"""torch.distributed.elastic: what ranks under a launcher use. ``teletensor launch`` replaces its agent (docs/launch.md)."""

from . import multiprocessing
