"""torch.utils.data._utils' names."""

from . import collate

__all__ = ["collate"]
