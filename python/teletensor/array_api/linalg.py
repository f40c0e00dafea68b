"""The standard's linear algebra extension."""

from . import _linalg
from ._array import as_array_functions

__all__ = list(_linalg.__all__)

globals().update(as_array_functions(_linalg))
