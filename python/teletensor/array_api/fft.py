"""The standard's Fourier transform extension."""

from . import _fft
from ._array import lifted_all

__all__ = list(_fft.__all__)

globals().update(lifted_all(_fft))
