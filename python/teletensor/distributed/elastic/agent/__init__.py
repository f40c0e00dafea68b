"""torch.distributed.elastic.agent: the agent of a node."""

from ...._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), None)
