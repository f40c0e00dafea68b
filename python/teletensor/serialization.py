"""torch.serialization's names: save, load and what load raises of a damaged file."""

from ._serialization import LoadError, load, save

__all__ = ["LoadError", "load", "save"]
