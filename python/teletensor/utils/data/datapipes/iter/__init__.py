"""torch.utils.data.datapipes.iter: pipes that are iterated."""

from ....._lazy import lazy_attributes
from ..datapipe import IterDataPipe

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_combining": "Concater Demultiplexer Forker Multiplexer Zipper",
    "_files": "FileLister FileOpener StreamReader",
    "_items": "Batcher Collator Filter Grouper IterableWrapper Mapper Sampler ShardingFilter Shuffler UnBatcher",
}

__all__ = [  # noqa: F822 - imported at their first use
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper", "IterDataPipe",
    "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
