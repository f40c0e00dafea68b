"""torch.nn: neural networks over tensors in an engine."""

from . import common_types, functional, init, utils
from .modules import *  # noqa: F403
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

from . import parallel  # isort: skip  # needs Module

__all__ = ["Buffer", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "parallel", "utils"]
