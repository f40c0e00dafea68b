"""The standard's linear algebra extension."""

from . import _linalg
from ._array import lifted_all

__all__ = list(_linalg.__all__)

globals().update(lifted_all(_linalg))
