"""torch.utils.data.datapipes.iter: pipes that are iterated."""

from __future__ import annotations

from ..datapipe import IterDataPipe
from ._combining import Concater, Demultiplexer, Forker, Multiplexer, Zipper
from ._files import FileLister, FileOpener, StreamReader
from ._items import Batcher, Collator, Filter, Grouper, IterableWrapper, Mapper, Sampler, ShardingFilter, Shuffler, UnBatcher

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper", "IterDataPipe",
    "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip
