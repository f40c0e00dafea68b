"""Errors of programs whose control flow depends on data or on sizes; PyTorch's module of the same name."""

from __future__ import annotations

__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode"]


class ConstraintViolationError(RuntimeError):
    """A size that was declared dynamic must have one value, or values of a smaller range."""


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818 - PyTorch's name
    """Python code needs the value of a tensor that is computed by the recorded program."""
