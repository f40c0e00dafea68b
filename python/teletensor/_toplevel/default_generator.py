"""torch.default_generator, and the error of a GPU."""

from __future__ import annotations

from .._generator import default_generator
from .._lazy import set_module

__all__ = ["AcceleratorError", "default_generator"]


class AcceleratorError(RuntimeError):
    """An error of a GPU."""


set_module("teletensor", AcceleratorError)
