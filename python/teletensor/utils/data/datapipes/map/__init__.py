"""torch.utils.data.datapipes.map: pipes with keys."""

from __future__ import annotations

from ..datapipe import MapDataPipe
from ._items import Batcher, Concater, Mapper, SequenceWrapper, Shuffler, Zipper

__all__ = ["Batcher", "Concater", "MapDataPipe", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
