"""Where functions of the package are, for tables of operators that are read before the package is complete."""

from __future__ import annotations

import importlib
from collections.abc import Callable

REDUCTIONS = ("none", "mean", "sum")  # by PyTorch's number


def public(name: str) -> Callable:
    """A function of the main module."""
    import teletensor

    return getattr(teletensor, name)


def functional(name: str) -> Callable:
    """A function of torch.nn.functional."""
    return getattr(importlib.import_module("teletensor.nn.functional"), name)


def linalg(name: str) -> Callable:
    """A function of torch.linalg."""
    return getattr(importlib.import_module("teletensor.linalg"), name)
