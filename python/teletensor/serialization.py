"""torch.serialization: save, load and LoadError."""

from ._serialization import LoadError, load, save

__all__ = ["LoadError", "load", "save"]
