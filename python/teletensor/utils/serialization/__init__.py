"""torch.utils.serialization: the settings of save and load."""

from . import config

__all__ = ["config"]
