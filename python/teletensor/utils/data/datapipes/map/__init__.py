"""torch.utils.data.datapipes.map: pipes with keys."""

from ....._lazy import lazy_attributes
from ..datapipe import MapDataPipe

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_items": "Batcher Concater Mapper SequenceWrapper Shuffler Zipper",
}

__all__ = [  # noqa: F822 - some are imported at their first use
    "Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
