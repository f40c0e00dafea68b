"""The standard's Fourier transform extension."""

from . import _fft
from ._array import as_array_functions

__all__ = list(_fft.__all__)

globals().update(as_array_functions(_fft))
