"""torch.nn: neural networks over tensors in an engine."""

from . import common_types, functional, init, utils
from .modules import *  # noqa: F403
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedParameter

from . import parallel  # isort: skip  # needs Module

__all__ = ["Buffer", "Module", "Parameter", "UninitializedParameter", "functional", "init", "parallel", "utils"]
