"""The names of torch.nn."""

from __future__ import annotations

from . import functional, init, utils
from ._factory_kwargs import factory_kwargs
from .modules import *  # noqa: F403
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [  # noqa: F405, F822 - some are imported at their first use
    "Buffer", "DataParallel", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter", "factory_kwargs",
    "functional", "init", "parallel", "utils",
]  # fmt: skip
