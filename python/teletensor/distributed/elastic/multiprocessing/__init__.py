"""torch.distributed.elastic.multiprocessing: `errors`."""

from . import errors
